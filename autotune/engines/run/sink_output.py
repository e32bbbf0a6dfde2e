"""Heaps or dumps on their way from the device to a sink: what is alike for both."""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from ...core.errors import UsageError, one_line
from ..machine.backend import Event
from .bay import Bay
from .counters import FCounters, XCounters
from .queues import Buckets


class Pinned(Protocol):
    """A bucket in pinned memory, which the device fills until the event ``copied``."""

    copied: Event | None


P = TypeVar("P", bound=Pinned)


class SinkOutput(Generic[P]):
    """Copies results out in the thread that makes them, and writes them in another thread.

    A live source does not wait: what is made while no bucket is free, or after the sink has failed, is dropped and
    counted.
    """

    def __init__(
        self, bay: Bay, sink: Any | None, counters: FCounters | XCounters, is_live: bool, buckets: Sequence[P]
    ) -> None:
        self._sink, self._sink_counters, self._activity = sink, counters, bay.activity
        self._ending, self._is_live = bay.ending, is_live and sink is not None
        self._ending.n_sinks += sink is not None
        self._copies = bay.backend.stream()
        self.buckets = Buckets(list(buckets), bay.ending)

    def finish(self) -> None:
        """Make ``write`` end when it has written all that was delivered."""
        self.buckets.give(None)

    def write(self) -> None:
        """Write what was delivered until ``finish``. Raises the sink's error, unless the source is live."""
        while (bucket := self.buckets.take()) is not None:
            assert bucket.copied is not None
            bucket.copied.wait()
            if self._sink_counters.sink_error or not self._has_written(bucket):
                self._drop(bucket)
            else:
                self._count(bucket)
            self.buckets.give_back(bucket)

    def _free(self) -> P | None:
        """Returns a free bucket, for which only a source that is not live waits; None if there is none."""
        return self.buckets.free_now() if self._is_live else self.buckets.free()

    def _has_written(self, bucket: P) -> bool:
        try:
            self._pass_on(bucket)
        except UsageError as error:
            if not self._is_live:
                raise
            self._sink_counters.sink_error = one_line(str(error))
            self._ending.sink_failed(error)
        return not self._sink_counters.sink_error

    def _pass_on(self, bucket: P) -> None:
        """Write a bucket to the sink."""
        raise NotImplementedError

    def _drop(self, bucket: P) -> None:
        """Count a bucket that was not written."""
        raise NotImplementedError

    def _count(self, bucket: P) -> None:
        """Count a bucket that was written."""
        raise NotImplementedError
