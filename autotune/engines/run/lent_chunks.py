"""Chunks of a source. It may fill memory that is lent to it: then the device copies it, and the memory goes back."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic

import numpy as np
from numpy.typing import DTypeLike

from ..streams.lending import Lends
from .bay import Bay
from .counters import FCounters, XCounters
from .queues import Buckets, Chunk, ChunkSource, Ending, R, Stopped, read_chunks
from .threads import ThreadTasks

N_CHUNKS = 4  # chunks in pinned memory


class LentChunks(Generic[R]):
    """Takes chunks from a source of type ``Lends`` in one thread, and gives their memory back in another one.

    Args:
        arrays: pinned memory, more than the source's ``n_kept``.
        dropped: takes chunks that came while a live source was short of arrays.
    """

    def __init__(
        self, source: Lends[R], arrays: Sequence[np.ndarray], ending: Ending, dropped: Callable[[R], None]
    ) -> None:
        self._source, self._ending, self._dropped = source, ending, dropped
        self._chunks = [Chunk[R](array) for array in arrays]
        self._numbers = {id(chunk): number for number, chunk in enumerate(self._chunks)}
        self.buckets: Buckets[Chunk[R]] = Buckets([], ending, is_input=True)
        self._n_taken, self._n_returned, self._has_ended = 0, 0, False
        ending.wakes += [source.stop] if hasattr(source, "stop") else []
        source.lend(arrays)

    def take(self) -> None:
        """Take chunks until the source ends. An error ends it, too; chunks taken before are finished."""
        try:
            while not self._ending.is_near and (taken := self._source.take()) is not None:
                number, answer = taken
                if self._source.is_live and self._source.is_short:
                    self._dropped(answer)
                    self._source.give_back(number)
                    continue
                chunk = self._chunks[number]
                chunk.answer, chunk.read_at, chunk.copied = answer, time.monotonic(), None
                self._n_taken += 1
                self.buckets.give(chunk)
        except Stopped:
            raise
        except BaseException as error:
            self._ending.error = self._ending.error or error
        finally:
            self._has_ended = True
            self.buckets.give(None)

    def give_back(self) -> None:
        """Give back the arrays that the device has copied, until the ended source has all of them."""
        while not (self._has_ended and self._n_returned == self._n_taken):
            chunk = self.buckets.free_soon()
            if chunk is None:
                continue
            if chunk.copied is not None:
                chunk.copied.wait()
            self._n_returned += 1
            self._source.give_back(self._numbers[id(chunk)])


def chunks_of(
    bay: Bay,
    source: ChunkSource[R] | Lends[R],
    shape: tuple[int, ...],
    dtype: DTypeLike,
    counters: Sequence[FCounters | XCounters],
) -> tuple[Buckets[Chunk[R]], ThreadTasks]:
    """Returns the chunks of a source, of this shape and dtype, and the threads that read them, by name.

    ``counters`` count the chunks of a live source that found no free bucket.
    """

    def dropped(answer: R) -> None:
        for each in counters:
            each.dropped()

    n = N_CHUNKS + (source.n_kept(shape) if isinstance(source, Lends) else 0)
    arrays = bay.cores.made_by("reads", lambda: [bay.backend.pinned(shape, dtype) for _ in range(n)])
    if isinstance(source, Lends):
        lent = LentChunks(source, arrays, bay.ending, dropped)
        return lent.buckets, {"reads": lent.take, "returns": lent.give_back}
    chunks = Buckets([Chunk[R](array) for array in arrays], bay.ending, is_input=True)
    spare = np.empty(shape if source.is_live else 0, dtype)
    return chunks, {"reads": partial(read_chunks, source, chunks, spare, bay.ending, dropped)}
