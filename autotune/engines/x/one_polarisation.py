"""Correlates antennas of one polarisation as if they had two. The second one is 0, and its products are dropped."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..streams.voltages import Batches, VoltageSource


def first_of_two(voltages: np.ndarray, bits: int) -> np.ndarray:
    """Returns the first polarisation of int8 [.., pol, 2], or [.., pol] at 4 bits, as a view with n_pols = 1."""
    return voltages[..., :1] if bits == 4 else voltages[..., :1, :]


def of_both(came: np.ndarray) -> np.ndarray:
    """Returns flags of spectra, bool [.., spectra_per_heap, 1], repeated for two polarisations."""
    return np.repeat(came, 2, axis=-1)


class OnePolarisation:
    """A source of voltages of one polarisation that fills chunks of two."""

    def __init__(self, source: VoltageSource) -> None:
        self._source, self.antennas, self.is_live = source, source.antennas, source.is_live

    def read(self, out: np.ndarray) -> Batches | None:
        """Read the next batches into int8 [n_batches, n_antennas, C, spectra_per_heap, 2, 2]; see ``VoltageSource``."""
        out[...] = 0
        batches = self._source.read(first_of_two(out, self.antennas[0].bits))
        return None if batches is None else replace(batches, holes=_holes(batches.holes))

    def close(self) -> None:
        self._source.close()


def _holes(holes: Mapping[tuple[int, int], np.ndarray]) -> dict[tuple[int, int], np.ndarray]:
    return {place: of_both(came) for place, came in holes.items()}
