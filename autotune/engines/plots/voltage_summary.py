"""Sums a stream of any length for a picture of voltages, in a sink that uses constant memory."""

import numpy as np

from ..streams.voltages import VoltageInfo
from .rows import Bins, Rows, ratio

MOST_ROWS, MOST_BINS = 256, 1024
BLOCK = 1 << 17  # bytes of voltages to square in one step: their floats stay in the cache
EXACT = 1 << 24  # float32 is exact for integers up to this one
MOST_TOGETHER = EXACT // (2 * 128**2)  # spectra whose powers float32 can add exactly


class VoltageSummary:
    """A ``VoltageSink`` that sums power by channel and by time, saturated voltages, and spectra.

    All sums are exact. ``spectrum``: int64 [C, n_pols], sums of |v|^2 over all spectra. ``power``: rows of such sums in
    bins of channels, [n_bins, n_pols]; ``saturated``: rows of counts of saturated voltages, [n_pols]; ``spectra``: rows
    of counts of spectra that came, [n_pols].
    """

    def __init__(self, info: VoltageInfo, most_rows: int = MOST_ROWS, most_bins: int = MOST_BINS) -> None:
        self.info, self.bins = info, Bins(info.n_channels, most_bins)
        self.spectrum = np.zeros((info.n_channels, info.n_pols), np.int64)
        self.power = Rows(info.heap_samples, (len(self.bins.begins), info.n_pols), most_rows)
        self.saturated = Rows(info.heap_samples, (info.n_pols,), most_rows)
        self.spectra = Rows(info.heap_samples, (info.n_pols,), most_rows)
        self.n_heaps = 0  # heaps that came
        self._powers = _Powers(info)

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Take heaps; see ``VoltageSink``."""
        if not len(timestamps):
            return
        powers = np.stack([self._powers(heap) for heap in voltages])
        self.spectrum += powers.sum(axis=0)
        self.power.add(timestamps, self.bins.sums(powers, axis=1))
        self.saturated.add(timestamps, saturated)
        self.spectra.add(timestamps, present.sum(axis=1, dtype=np.int64))
        self.n_heaps += len(timestamps)

    def close(self) -> None:
        return

    def mean_spectrum(self) -> np.ndarray:
        """Returns the mean of |v|^2, in squared steps of the quantiser: float64 [C, n_pols]; NaN without data."""
        return ratio(self.spectrum, self.spectra.values.sum(axis=0))

    def mean_power(self) -> np.ndarray:
        """Returns the mean of |v|^2 in rows and bins: float64 [n_rows, n_bins, n_pols]; NaN where nothing came."""
        return ratio(self.power.values, self.spectra.values[:, np.newaxis] * self.bins.counts[:, np.newaxis])

    def saturated_share(self) -> np.ndarray:
        """Returns the share of saturated voltages: float64 [n_rows, n_pols]; NaN where nothing came."""
        return ratio(self.saturated.values, self.spectra.values * self.info.n_channels)

    def present_share(self) -> np.ndarray:
        """Returns the share of the spectra that came: float64 [n_rows]."""
        n_whole = self.spectra.units * self.info.spectra_per_heap * self.info.n_pols
        return np.asarray(self.spectra.values.sum(axis=1) / n_whole)


class _Powers:
    """Sums |v|^2 over the spectra of a heap. float32 adds the squares, exactly for up to MOST_TOGETHER spectra."""

    def __init__(self, info: VoltageInfo) -> None:
        self._n_pols, self._is_packed = info.n_pols, info.bits == 4
        self._n = min(info.spectra_per_heap, MOST_TOGETHER)
        each = info.n_pols if self._is_packed else 2 * info.n_pols
        self._pols = np.zeros((self._n * each, info.n_pols), np.float32)
        for pol, column in enumerate(self._pols.T):
            column.reshape(self._n, info.n_pols, -1)[:, pol] = 1
        self._each = each
        self._scratch = np.empty(max(BLOCK, self._n * each), np.float32)

    def __call__(self, heap: np.ndarray) -> np.ndarray:
        """Returns int64 [C, n_pols]."""
        rows = heap.reshape(len(heap), -1)
        powers = np.zeros((len(heap), self._n_pols), np.int64)
        width = self._n * self._each
        n_rows = max(1, BLOCK // width)
        for at in range(0, rows.shape[1], width):
            for row in range(0, len(rows), n_rows):
                some = rows[row : row + n_rows, at : at + width]
                squares = self._scratch[: some.size].reshape(some.shape)
                if self._is_packed:
                    np.take(NIBBLES, some.view(np.uint8), out=squares, mode="clip")
                else:
                    squares[...] = some
                    np.square(squares, out=squares)
                powers[row : row + n_rows] += (squares @ self._pols[: some.shape[1]]).astype(np.int64)
        return powers


def _nibbles() -> np.ndarray:
    """Returns |v|^2 for each byte, whose nibbles are two's complement: float32 [256]."""
    byte = np.arange(256, dtype=np.uint8).view(np.int8)
    real, imaginary = (byte << 4) >> 4, byte >> 4
    return real.astype(np.float32) ** 2 + imaginary.astype(np.float32) ** 2


NIBBLES = _nibbles()
