"""Correlates on the host's cores with NumPy: what ``correlate`` and ``accumulate`` compute, bit for bit.

float32 matrix products sum products of integers, over as many spectra as a float32 holds exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...system.one_thread import one_thread
from ..machine.host_backend import HostBackend, HostStream
from .x_settings import PRODUCTS, XSettings

LARGEST = 2**31 - 1  # the largest part of a visibility, positive or negative
MISSING = (-(2**31), 1)  # the visibility of a baseline without all of its data
EXACT = 1 << 24  # float32 is exact for integers up to this one
PIECE = 1 << 18  # about the floats in a piece, 1 MiB


@dataclass(frozen=True)
class UsedBatches:
    """The batches of a chunk to correlate, like the fields in a problem of ``correlate``."""

    first_batch: int = 0
    n_used: int = 0


class NumpyCorrelate:
    """Replaces a launcher of ``correlate``: it adds batches of a chunk to accumulators."""

    def __init__(self, backend: HostBackend, settings: XSettings) -> None:
        self._workers, self._settings = backend.workers, settings
        length = settings.spectra_per_heap
        self._most = EXACT >> 2 * (settings.bits - 1)  # spectra, whose products are at most 2^(bits - 1) squared
        self._n_batches = max(1, self._most // length)
        together = min(self._n_batches, settings.batches_per_chunk) * length * 4 * settings.n_antennas
        self._n_channels = max(1, PIECE // together)
        self._j, self._i = np.tril_indices(settings.n_antennas)
        codes = np.arange(256, dtype=np.uint8)
        parts = np.stack([codes << 4, codes & 0xF0], axis=-1).view(np.int8) >> 4  # real, imaginary
        self._of_nibbles = np.ascontiguousarray(parts).view(np.uint16)[:, 0]

    def __call__(
        self, used: UsedBatches, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, object], on: HostStream
    ) -> None:
        """Add batches of int8 ``chunk_shape`` to int64 [1, C, n_baselines, 4, 2]."""
        s, step = self._settings, self._n_channels
        voltages = arrays["voltages"][used.first_batch : used.first_batch + used.n_used]
        # Both polarisations of a spectrum, with both parts of each, move as one number while axes are reordered.
        rows = voltages.reshape(*voltages.shape[:4], -1).view(np.uint16 if s.bits == 4 else np.uint32)[..., 0]
        sums = arrays["accumulators"][0]
        pieces = [slice(first, first + step) for first in range(0, s.n_channels, step)]
        with one_thread():
            self._workers.each(lambda some: self._add(rows[:, :, some], sums[some]), pieces)

    def _add(self, rows: np.ndarray, sums: np.ndarray) -> None:
        """Adds [batch, antenna, c, time] of some channels to int64 [c, n_baselines, 4, 2]."""
        for first in range(0, len(rows), self._n_batches):
            ordered = np.ascontiguousarray(rows[first : first + self._n_batches].transpose(2, 0, 3, 1))
            if self._settings.bits == 4:
                ordered = self._of_nibbles.take(ordered.view(np.uint8))
            parts = ordered.view(np.int8).reshape(len(sums), -1, 4 * self._settings.n_antennas)
            for begin in range(0, parts.shape[1], self._most):
                x = parts[:, begin : begin + self._most].astype(np.float32)
                self._add_products(np.matmul(x.transpose(0, 2, 1), x), sums)

    def _add_products(self, products: np.ndarray, sums: np.ndarray) -> None:
        """Adds float32 [c, r, r], products of all pairs of parts of all polarisations, to the products of baselines."""
        n = self._settings.n_antennas
        parts = products.reshape(-1, n, 2, 2, n, 2, 2).transpose(0, 1, 4, 5, 2, 3, 6)[:, self._i, self._j]
        parts = parts.reshape(len(sums), len(self._i), PRODUCTS, 2, 2).astype(np.int64)  # [.., part of i, part of j]
        sums[..., 0] += parts[..., 0, 0] + parts[..., 1, 1]
        sums[..., 1] += parts[..., 1, 0] - parts[..., 0, 1]


class NumpyAccumulate:
    """Replaces a launcher of ``accumulate``: it makes visibilities from accumulators, and clears them."""

    def __call__(
        self, used: UsedBatches, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, object], on: HostStream
    ) -> None:
        """Fill int32 [C, n_baselines, 4, 2]. Count in uint64 [1] the products of present baselines beyond 32 bits."""
        (sums,), visibilities, present = arrays["accumulators"], arrays["visibilities"], arrays["present"] != 0
        for of_channel, out in zip(sums, visibilities, strict=True):
            clipped = np.clip(of_channel, -LARGEST, LARGEST)
            arrays["saturated"][0] += np.count_nonzero((clipped != of_channel).any(axis=-1)[present])
            out[...] = clipped
            out[~present] = MISSING
        sums[...] = 0
