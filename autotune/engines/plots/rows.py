"""Sums a stream of any length in a fixed number of rows of time, and channels in a fixed number of bins.

When all rows are full, they are added in pairs, so that each spans twice the time and half of them are free again. Sums
are integers, so they depend neither on the time of a merge nor on the lengths of writes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...core.errors import UsageError


class Rows:
    """Sums of arrays by time. Rows are 0 at first, and missing times do not change them.

    Args:
        unit: samples from one array to the next; a row spans a power of two times as many.
        shape: the shape of an array.
        most: the largest number of rows, which must be even.
    """

    def __init__(self, unit: int, shape: tuple[int, ...], most: int = 256) -> None:
        if unit < 1 or most < 2 or most % 2:
            raise UsageError(
                f"rows of {unit} samples, {most} at most: unit must be positive, and most even and 2 or more"
            )
        self._unit, self._values = unit, np.zeros((most, *shape), np.int64)
        self.merged = 1  # units that a row spans
        self.first: int | None = None  # timestamp at which row 0 begins
        self.n = 0  # rows up to the last one with data
        self._n_units = 0  # units up to the last one with data

    @property
    def row_samples(self) -> int:
        """Returns the samples that a row spans."""
        return self._unit * self.merged

    @property
    def values(self) -> np.ndarray:
        """Returns the sums: int64 [n, *shape]."""
        return self._values[: self.n]

    @property
    def times(self) -> np.ndarray:
        """Returns the middles of rows: float64 [n], samples since the stream's zero."""
        return np.asarray((self.first or 0) + self.row_samples * (np.arange(self.n) + 0.5))

    @property
    def units(self) -> np.ndarray:
        """Returns the units that each row spans, int64 [n], including missing ones. The last row ends with the data."""
        return np.asarray(np.minimum(self.merged, self._n_units - self.merged * np.arange(self.n)))

    def add(self, timestamps: np.ndarray, arrays: np.ndarray) -> None:
        """Add integers [n, *shape] that came at ``timestamps``, int64 [n], which rise and are not before the first."""
        if not len(timestamps):
            return
        if self.first is None:
            self.first = int(timestamps[0])
        while (int(timestamps[-1]) - self.first) // self.row_samples >= len(self._values):
            self._merge()
        rows = (timestamps - self.first) // self.row_samples
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        self._values[rows[begins]] += np.add.reduceat(arrays, begins, axis=0, dtype=np.int64)
        self.n, self._n_units = int(rows[-1]) + 1, (int(timestamps[-1]) - self.first) // self._unit + 1

    def _merge(self) -> None:
        half = len(self._values) // 2
        self._values[:half] = self._values[0::2] + self._values[1::2]
        self._values[half:] = 0
        self.merged, self.n = 2 * self.merged, -(-self.n // 2)


@dataclass(frozen=True)
class Bins:
    """Channels in bins of one width; the last bin may have fewer channels."""

    n_channels: int
    most: int

    @property
    def width(self) -> int:
        """Returns the number of channels in a bin."""
        return -(-self.n_channels // self.most)

    @cached_property
    def begins(self) -> np.ndarray:
        """Returns the first channel of each bin: int64 [n_bins]."""
        return np.arange(0, self.n_channels, self.width)

    @cached_property
    def counts(self) -> np.ndarray:
        """Returns the number of channels in each bin: int64 [n_bins]."""
        return np.diff(self.begins, append=self.n_channels)

    @cached_property
    def middles(self) -> np.ndarray:
        """Returns the middles of bins: float64 [n_bins], in channels."""
        return self.begins + (self.counts - 1) / 2

    def sums(self, arrays: np.ndarray, axis: int) -> np.ndarray:
        """Returns the sums of integers over the channels of each bin, int64."""
        if self.width == 1:
            return np.asarray(arrays, np.int64)
        return np.add.reduceat(arrays, self.begins, axis=axis, dtype=np.int64)


def ratio(sums: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """Returns sums / n, NaN where n is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(n, sums / n, np.nan))
