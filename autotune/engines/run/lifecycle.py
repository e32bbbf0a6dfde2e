"""The lifecycle that all engines share: threads read and write while the caller's gives work to the device."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from .bay import Bay
from .counters import FCounters, XCounters
from .queues import Buckets
from .stream_progress import StreamProgress
from .threads import ThreadTasks, run_beside

C = TypeVar("C")  # the counts that ``run`` returns


class Engine(Generic[C]):
    """An engine, which runs once. Each kind says in ``_compute`` what the caller's thread does.

    Args:
        counts: what ``run`` returns.
        counters: all counters of the engine.
        readers, writers: the functions of threads, by thread name.
        queues: the buckets that its progress names.
    """

    def __init__(
        self,
        bay: Bay,
        counts: C,
        counters: Sequence[FCounters | XCounters],
        readers: ThreadTasks,
        writers: ThreadTasks,
        queues: Mapping[str, Buckets[Any]],
    ) -> None:
        self._bay, self._ending, self._counts, self.all_counters = bay, bay.ending, counts, counters
        self._readers, self._writers = readers, writers
        self.progress = StreamProgress(bay.activity, queues, bay.report, bay.trace)
        bay.backend.finish()

    def stop(self) -> None:
        """Take no more chunks, but finish the one in flight. Another thread calls it, even while a source waits."""
        self._ending.asked.set()

    @property
    def is_stopped(self) -> bool:
        """Returns whether the engine was asked to end, by ``stop`` or Ctrl-C."""
        return self._ending.asked.is_set()

    def run(self) -> C:
        """Run to the end of all sources, or until ``stop`` or Ctrl-C. Returns the counts.

        An F-engine counts for each output, an X-engine its dumps, and both together for each antenna and then dumps.

        Raises:
            UsageError: the error of a source or a sink. Heaps and dumps written before stay.
        """
        for counters in self.all_counters:
            counters.began = time.monotonic()
        bay = self._bay
        run_beside(bay.ending, self._readers, self._writers, self._compute, bay.backend.finish, bay.cores)
        return self._counts

    def _compute(self) -> None:
        raise NotImplementedError
