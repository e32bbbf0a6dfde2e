"""Gains of an antenna over time: complex factors for each channel and polarisation."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ...core.errors import UsageError
from ..machine.backend import Backend, Stream
from ..machine.staging import Staging
from .delays import BEFORE


class Gains:
    """Gains with the times from which they hold for heaps. Another thread may set some while an engine runs.

    Args:
        values: complex64 [n_channels, n_pols], or a shape that broadcasts to it; they hold from the beginning.
    """

    def __init__(self, n_channels: int, n_pols: int, values: complex | np.ndarray = 1.0) -> None:
        self._shape = n_channels, n_pols
        self._n_set = 0
        self._pieces: tuple[tuple[int, int, np.ndarray], ...] = ()  # start, number, values
        self.set(BEFORE, values)

    def set(self, start: int, values: complex | np.ndarray) -> None:
        """Set the gains of heaps from sample ``start`` on. Gains that were set for later times are dropped.

        Raises:
            UsageError: for another shape, or values that are not finite.
        """
        try:
            full = np.ascontiguousarray(np.broadcast_to(np.asarray(values, np.complex64), self._shape))
        except ValueError as error:
            raise UsageError(f"gains have the shape {list(np.shape(values))}, must be {list(self._shape)}") from error
        if not np.isfinite(full).all():
            raise UsageError("gains must be finite")
        self._n_set += 1
        self._pieces = (*(p for p in self._pieces if p[0] < start), (start, self._n_set, full))

    @property
    def pieces(self) -> list[tuple[int, np.ndarray]]:
        """Returns (start, complex64 [n_channels, n_pols]) of all gains."""
        return [(start, values) for start, _, values in self._pieces]

    def begin_at(self, time: int) -> None:
        """Make the gains that hold at ``time`` hold from the beginning on."""
        number, values = self.at(time)
        self._pieces = ((BEFORE, number, values), *(p for p in self._pieces if p[0] > time))

    def shift(self, samples: int) -> None:
        """Move all gains to times that are so much later, but those of the beginning."""
        self._pieces = tuple((start + samples * (start != BEFORE), n, values) for start, n, values in self._pieces)

    def at(self, time: int) -> tuple[int, np.ndarray]:
        """Returns the gains of a heap that begins at ``time``, and before them their number."""
        pieces = self._pieces
        _, number, values = pieces[max(bisect_right([p[0] for p in pieces], time) - 1, 0)]
        return number, values

    def ranges(self, time: int, n_heaps: int, heap_samples: int) -> Iterator[tuple[int, int]]:
        """Yields (first, n) of the heaps from ``time`` on that have the same gains."""
        firsts = (-((time - start) // heap_samples) for start, _, _ in self._pieces)  # the first heap of each
        cuts = sorted({0, n_heaps, *(heap for heap in firsts if 0 < heap < n_heaps)})
        yield from ((first, end - first) for first, end in pairwise(cuts))


class SentGains:
    """The gains on a device: complex64 [n_channels, n_pols] in ``array``."""

    def __init__(self, backend: Backend, stream: Stream, n_channels: int, n_pols: int) -> None:
        self.array = backend.empty((n_channels, n_pols), np.complex64)
        self._stream, self._staging = stream, Staging(backend, ((n_channels, n_pols), np.complex64))
        self._which: object = None  # the number of the gains on the device

    def send(self, which: object, values: np.ndarray) -> None:
        """Send gains unless the device has them. ``which`` identifies them, like the number from ``Gains.at``."""
        if which != self._which:
            (pinned,) = self._staging.arrays()
            pinned[...] = values
            self._staging.send(self._stream, self.array)
            self._which = which
