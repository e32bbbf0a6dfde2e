"""Plans an X-engine: chunks of batches in, ranges to correlate and dumps out. It uses neither a device nor data.

A batch is the heaps of all antennas at one time. A dump is ``accumulate`` batches, and begins at an absolute
multiple of its length, so it may begin in the middle of a chunk, and does not depend on the lengths of chunks. The
stream reaches from the first batch with a heap to the last one. A dump that begins before or ends after it is not made,
nor is a dump without heaps. Missing data only lower the weights of a dump, unless dumps must be complete: then a
baseline has all of its data in a dump or none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...core.errors import UsageError
from .weights import PairedSpectra

MOST_WEIGHT = (1 << 32) - 1
NO_HOLES: Mapping[tuple[int, int], np.ndarray] = {}


@dataclass(frozen=True)
class BatchRange:
    """Batches of the current chunk that belong to one dump."""

    first: int
    n: int


@dataclass(frozen=True)
class Integration:
    """A finished integration. ``weights``: uint32 [n_baselines, 4], in the order of ``PairedSpectra``."""

    time: int
    weights: np.ndarray

    def present(self) -> np.ndarray:
        """Returns whether each baseline has data: uint8 [n_baselines]."""
        return np.asarray(self.weights.any(axis=1), np.uint8)


class XPlan:
    """The state between chunks: the dump under way, the number of its batches, and the spectra of each product.

    ``n_missing``: heaps that are missing between the first and the last one of their antenna.
    ``n_skipped``: dumps without heaps between the first and the last dump.

    Args:
        n_antennas: heaps in a batch.
        batch_samples: samples from one batch to the next.
        accumulate: batches in a dump.
        spectra_per_heap: spectra in a batch.
        complete: whether a baseline that lacks any spectrum of a dump has the weight 0 there.
    """

    def __init__(
        self,
        n_antennas: int,
        batch_samples: int,
        accumulate: int,
        spectra_per_heap: int,
        *,
        complete: bool = False,
    ) -> None:
        counts = {"n_antennas": n_antennas, "batch_samples": batch_samples, "accumulate": accumulate}
        for name, value in counts.items():
            if value < 1:
                raise UsageError(f"{name}={value} must be at least 1")
        self._dump_spectra, self._complete = accumulate * spectra_per_heap, complete
        if self._dump_spectra > MOST_WEIGHT:
            raise UsageError(
                f"accumulate={accumulate} of {spectra_per_heap} spectra are more than weights of 32 bits "
                f"count, {MOST_WEIGHT}: choose fewer"
            )
        self.n_antennas, self.batch_samples, self.accumulate = n_antennas, batch_samples, accumulate
        self.n_missing, self.n_skipped = 0, 0
        self._end: int | None = None  # number of the batch after the last chunk
        self._next: int | None = None  # number of the stream's next batch; None before it begins
        self._first_dump = 0  # number of the first dump that is whole
        self._last_dump: int | None = None  # number of the last dump that was made
        self._n_came = 0  # batches of the dump under way
        self._paired = PairedSpectra(n_antennas, spectra_per_heap)
        self._began = np.zeros(n_antennas, bool)  # antennas with a heap so far
        self._absent = np.zeros(n_antennas, np.int64)  # heaps since the last one that came

    def chunk(
        self, time: int, present: np.ndarray, holes: Mapping[tuple[int, int], np.ndarray] = NO_HOLES
    ) -> Iterator[BatchRange | Integration]:
        """Yields the steps for the batches from ``time`` on, in order.

        Batches between the chunk before and this one are missing. The cost of a gap does not depend on its length.

        Args:
            present: bool [n_batches, n_antennas], False where a heap is missing.
            holes: flags of spectra for heaps that lack some, as in ``Batches``.

        Raises:
            UsageError: when the chunk does not start at a batch, or starts before the end of the one before.
        """
        batch, remainder = divmod(time, self.batch_samples)
        if remainder:
            raise UsageError(f"a chunk starts at sample {time}, in the middle of a batch of {self.batch_samples}")
        if self._end is not None and batch < self._end:
            raise UsageError(
                f"a chunk starts at sample {time}, before the end of the one before, {self._end * self.batch_samples}"
            )
        self._end = batch + len(present)
        came = np.flatnonzero(present.any(axis=1))
        if not len(came):
            return
        first, end = int(came[0]), int(came[-1]) + 1  # absent batches at the ends belong to a gap, or lie outside
        if self._next is None:
            self._next = batch + first
            self._first_dump = -(-self._next // self.accumulate)
        n_gap = batch + first - self._next
        self._count(n_gap, present[first:end])
        yield from self._pass(n_gap)
        while first < end:
            n = min(end - first, self._n_left)
            some = present[first : first + n]
            if not some.any():
                yield from self._pass(n)
            elif self._next // self.accumulate < self._first_dump:
                self._next += n
            else:
                yield BatchRange(first, n)
                inside = range(first, first + n)
                self._paired.add(some, {(b - first, a): came for (b, a), came in holes.items() if b in inside})
                self._n_came += n
                yield from self._advance(n)
            first += n

    @property
    def _n_left(self) -> int:
        """Returns the number of batches until the dump under way ends."""
        assert self._next is not None
        return self.accumulate - self._next % self.accumulate

    def _advance(self, n: int) -> Iterator[Integration]:
        """Advances by ``n`` batches, at most to the end of the dump under way, which has data."""
        assert self._next is not None
        self._next += n
        if self._next % self.accumulate == 0:
            number = self._next // self.accumulate - 1
            self.n_skipped += 0 if self._last_dump is None else number - self._last_dump - 1
            self._last_dump = number
            weights = self._paired.weights()
            if self._complete:
                weights[(weights != self._dump_spectra).any(axis=1)] = 0
            self._n_came = 0
            self._paired.clear()
            yield Integration(number * self.accumulate * self.batch_samples, weights)

    def _pass(self, n: int) -> Iterator[Integration]:
        """Skips ``n`` missing batches."""
        assert self._next is not None
        if self._n_came and n:
            n_here = min(n, self._n_left)
            yield from self._advance(n_here)
            n -= n_here
        self._next += n

    def _count(self, n_gap: int, present: np.ndarray) -> None:
        """Counts missing heaps once a later heap of their antenna has come."""
        n, came = len(present), present.any(axis=0)
        last = n - 1 - np.argmax(present[::-1], axis=0)
        first = np.where(self._began, 0, np.argmax(present, axis=0))
        before = np.where(self._began, self._absent + n_gap, 0)
        missing = before + last + 1 - first - np.count_nonzero(present, axis=0)
        self.n_missing += int(missing[came].sum())
        self._absent = np.where(came, n - 1 - last, self._absent + n_gap + n)
        self._began |= came
