"""Plans an X-engine: chunks of batches in, ranges to correlate and dumps out. No device, no data.

A batch is the heaps of one time of all antennas. A dump is ``threshold`` batches, from an absolute multiple of its
length on, so a dump may begin in the middle of a chunk, and does not depend on how the stream was cut.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..core.errors import UsageError


@dataclass(frozen=True)
class Correlate:
    """Batches of the current chunk that belong to one dump."""

    first: int
    n: int


@dataclass(frozen=True)
class Dump:
    """An integration that is over. An antenna is good if all of its heaps came; a baseline needs both of its own."""

    time: int
    good: np.ndarray  # bool [n_antennas]

    def present(self) -> np.ndarray:
        """Returns which baselines have all of their data: uint8 [n (n + 1) / 2].

        They are ordered as ``correlate`` has them: antennas (j, i) with i <= j, i fastest.
        """
        j, i = np.tril_indices(len(self.good))
        return np.asarray(self.good[i] & self.good[j], np.uint8)


class XPlan:
    """The state between chunks: the dump under way, how many of its batches came, and of which antennas all.

    Args:
        n_antennas: heaps of a batch.
        batch_samples: time from one batch to the next.
        threshold: batches of a dump.
    """

    def __init__(self, n_antennas: int, batch_samples: int, threshold: int) -> None:
        for name, value in (("n_antennas", n_antennas), ("batch_samples", batch_samples), ("threshold", threshold)):
            if value < 1:
                raise UsageError(f"{name}={value} must be at least 1")
        self.n_antennas, self.batch_samples, self.threshold = n_antennas, batch_samples, threshold
        self._next: int | None = None  # number of the next batch
        self._n_came = 0  # batches of the dump under way
        self._good = np.ones(n_antennas, bool)

    def chunk(self, time: int, present: np.ndarray) -> Iterator[Correlate | Dump]:
        """Yields what is to be done with the batches from ``time`` on, in this order.

        Batches between the chunk before and this one never came: dumps that end there have no good antenna.

        Args:
            present: bool [n_batches, n_antennas], False where a heap is missing.

        Raises:
            UsageError: when the chunk does not start with a batch, or starts before the end of the one before.
        """
        batch, remainder = divmod(time, self.batch_samples)
        if remainder:
            raise UsageError(f"a chunk starts at sample {time}, in the middle of a batch of {self.batch_samples}")
        if self._next is None:
            self._next = batch
        if batch < self._next:
            raise UsageError(
                f"a chunk starts at sample {time}, before the end of the one before, {self._next * self.batch_samples}"
            )
        while self._next < batch:
            yield from self._advance(min(batch - self._next, self._n_left))
        first = 0
        while first < len(present):
            n = min(len(present) - first, self._n_left)
            some = present[first : first + n]
            if some.any():
                yield Correlate(first, n)
            self._good &= some.all(axis=0)
            self._n_came += n
            yield from self._advance(n)
            first += n

    def finish(self) -> Iterator[Dump]:
        """Yields the dump under way: it lacks batches, so it has no good antenna."""
        if self._next is not None and self._next % self.threshold:
            yield from self._advance(self._n_left)

    @property
    def _n_left(self) -> int:
        """Returns the batches until the dump under way ends."""
        assert self._next is not None
        return self.threshold - self._next % self.threshold

    def _advance(self, n: int) -> Iterator[Dump]:
        """Goes on by ``n`` batches, to the end of the dump at most."""
        assert self._next is not None
        self._next += n
        if self._next % self.threshold == 0:
            good = self._good if self._n_came == self.threshold else np.zeros(self.n_antennas, bool)
            yield Dump((self._next - self.threshold) * self.batch_samples, good)
            self._n_came, self._good = 0, np.ones(self.n_antennas, bool)
