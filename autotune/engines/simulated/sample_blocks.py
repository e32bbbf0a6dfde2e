"""Samples in blocks at absolute multiples, so that they are the same however ranges of them are cut."""

from collections.abc import Callable

import numpy as np


class Blocks:
    """Any part of what is made in blocks, such as noise. The blocks of the last part are kept for the next one.

    Args:
        make: returns the block of a number, [.., size], which may be negative.
    """

    def __init__(self, make: Callable[[int], np.ndarray], size: int) -> None:
        self._make, self._size = make, size
        self._kept: dict[int, np.ndarray] = {}

    def take(self, begin: int, n: int) -> np.ndarray:
        """Returns the samples from ``begin`` on: [.., n]."""
        first = begin // self._size
        numbers = range(first, max(first + 1, -(-(begin + n) // self._size)))
        kept = self._kept
        self._kept = {each: kept[each] if each in kept else self._make(each) for each in numbers}
        joined = np.concatenate(list(self._kept.values()), axis=-1)
        return np.asarray(joined[..., begin - first * self._size :][..., :n])


def quantised(x: np.ndarray, least: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the nearest integers, half to even, within limits, and whether they would be beyond: int16 and bool."""
    nearest = np.rint(x)
    within = np.clip(nearest, least, most)
    return within.astype(np.int16), within != nearest
