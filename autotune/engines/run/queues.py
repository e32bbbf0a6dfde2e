"""Queues between the threads of an engine: one thread reads, the caller's gives work to the device, one thread writes.

Neighbours share a pair of queues: filled buckets go forward, free ones come back. A slow thread makes the one before it
wait, and queues do not grow. A live source cannot wait: it drops whole chunks, which are counted.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Generic, Protocol, TypeVar

import numpy as np

from ..machine.backend import Event

B = TypeVar("B")
T = TypeVar("T")
R = TypeVar("R")  # the source's answer about a chunk, such as Samples
R_co = TypeVar("R_co", covariant=True)
POLL_S = 0.1  # a waiting thread checks so often whether it must stop


class Stopped(Exception):
    """Raised in threads that wait for a bucket when the engine ends."""


@dataclass
class Ending:
    """The reason why an engine ends before its source does: a request, or a thread's error."""

    asked: threading.Event = field(default_factory=threading.Event)  # take no more chunks; finish the one in flight
    failed: threading.Event = field(default_factory=threading.Event)  # give up
    error: BaseException | None = None
    wakes: list[Callable[[], None]] = field(default_factory=list)  # each ends a source that a thread waits for
    n_sinks: int = 0  # working sinks; the engine ends when the last one fails
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_near(self) -> bool:
        """Returns whether no more chunks should be read."""
        return self.asked.is_set() or self.failed.is_set()

    def fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        self.failed.set()

    def sink_failed(self, error: BaseException) -> None:
        """Go on without a sink, whose error is raised at the end. End the engine if it was the last sink."""
        with self.lock:  # several may fail at once, each in a thread of its own
            self.n_sinks -= 1
            self.error = self.error or error
            if self.n_sinks == 0:
                self.failed.set()


class Buckets(Generic[B]):
    """A fixed number of buckets that circulate between two threads.

    ``is_input``: whether they hold a source's data, which are not taken any more when the engine is asked to end.
    """

    def __init__(self, buckets: list[B], ending: Ending, is_input: bool = False) -> None:
        self._ending, self._n, self._is_input = ending, len(buckets), is_input
        # A SimpleQueue waits for ever if a signal's handler outlasts its timeout.
        self._free: Queue[B] = Queue()
        self._filled: Queue[B | None] = Queue()
        self._next: list[B | None] = []  # the bucket that `wait` found; `take` returns it first
        for bucket in buckets:
            self._free.put(bucket)

    def free(self) -> B:
        """Returns a free bucket. Waits for one. Raises Stopped."""
        return self._get(self._free)

    def free_now(self) -> B | None:
        """Returns a free bucket, or None if there is none now."""
        try:
            return self._free.get_nowait()
        except Empty:
            return None

    def free_soon(self) -> B | None:
        """Returns a free bucket, or None if there is none within POLL_S. Raises Stopped when the engine fails."""
        if self._ending.failed.is_set():
            raise Stopped
        with suppress(Empty):
            return self._free.get(timeout=POLL_S)
        return None

    def give(self, bucket: B | None) -> None:
        """Pass a filled bucket on; None marks the end."""
        self._filled.put(bucket)

    def take(self) -> B | None:
        """Returns the next filled bucket, or None at the end. Waits for it. Raises Stopped."""
        if self._next and not self._is_over:
            return self._next.pop()
        try:
            return self._get(self._filled)
        except Stopped:
            if self._ending.failed.is_set():
                raise
            return None

    @property
    def is_ready(self) -> bool:
        """Returns whether ``take`` returns at once."""
        return self._n_filled > 0 or self._is_over

    def wait(self, seconds: float) -> None:
        """Wait until a bucket can be taken, at most for ``seconds``. The taking thread calls it."""
        if not self._next:
            with suppress(Empty):
                self._next.append(self._filled.get(timeout=seconds))

    @property
    def _n_filled(self) -> int:
        return len(self._next) + self._filled.qsize()

    def give_back(self, bucket: B) -> None:
        self._free.put(bucket)

    def depth(self) -> str:
        """Returns the number of filled buckets and of all buckets as text: "2/4"."""
        return f"{self._n_filled}/{self._n}"

    @property
    def _is_over(self) -> bool:
        return self._ending.failed.is_set() or (self._is_input and self._ending.asked.is_set())

    def _get(self, queue: Queue[T]) -> T:
        while not self._is_over:
            with suppress(Empty):
                return queue.get(timeout=POLL_S)
        raise Stopped


@dataclass
class Chunk(Generic[R]):
    """A bucket of pinned memory that a source fills."""

    array: np.ndarray
    answer: R | None = None  # the source's answer about this chunk
    read_at: float = 0.0  # time.monotonic() after the chunk was read
    copied: Event | None = None  # the event after which the device has it


class ChunkSource(Protocol[R_co]):
    """A source of samples or of voltages."""

    is_live: bool

    def read(self, out: np.ndarray) -> R_co | None: ...


def read_chunks(
    source: ChunkSource[R], buckets: Buckets[Chunk[R]], spare: np.ndarray, ending: Ending, dropped: Callable[[R], None]
) -> None:
    """Reads ``source`` to its end, in a thread. An error ends it, too; chunks read before are finished.

    ``spare``: memory that a live source fills while no bucket is free; ``dropped`` takes such chunks.
    """
    try:
        while not ending.is_near:
            bucket = buckets.free_now() if source.is_live else buckets.free()
            if bucket is None:
                if (lost := source.read(spare)) is None:
                    break
                dropped(lost)
                continue
            if bucket.copied is not None:
                bucket.copied.wait()
            bucket.answer = source.read(bucket.array)
            bucket.read_at = time.monotonic()
            if bucket.answer is None:
                break
            buckets.give(bucket)
    except Stopped:
        raise
    except BaseException as error:
        ending.error = ending.error or error
    finally:
        buckets.give(None)
