"""The gains of a batch's heaps: those that are set when its first spectra are made."""

from dataclasses import dataclass

import numpy as np

from ..corrections.gains import Gains
from .plan import Batch
from .voltage_buffers import BandSettings


@dataclass(frozen=True)
class PlacedGains:
    """Gains, and the spectra of a batch that have them."""

    begin: int
    end: int
    number: int  # the gains' number from ``Gains.at``
    values: np.ndarray  # complex64 [n_channels, n_pols]


class BatchGains:
    """Remembers the gains of the batch under way, so that all spectra of a heap have the same.

    Args:
        step: samples of a batch's time from one spectrum to the next.
        decimation: input samples of the engine in one of these samples.
    """

    def __init__(self, gains: Gains, settings: BandSettings, step: int, decimation: int) -> None:
        self._gains, self._settings, self._decimation = gains, settings, decimation
        self._heap_samples = settings.spectra_per_heap * step * decimation
        self._batch: Batch | None = None
        self._found: list[PlacedGains] = []

    def of(self, batch: Batch) -> list[PlacedGains]:
        """Returns the gains of a batch, each with its range of spectra."""
        if batch is not self._batch:
            length, time = self._settings.spectra_per_heap, batch.time * self._decimation
            self._found = [
                PlacedGains(first * length, (first + n) * length, *self._gains.at(time + first * self._heap_samples))
                for first, n in self._gains.ranges(time, self._settings.heaps_per_batch, self._heap_samples)
            ]
            self._batch = batch
        return self._found
