"""Worker processes: they do not re-run the user's script, they end with their parent, and they mind their memory."""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from heapq import heappop, heappush
from itertools import count
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.popen_spawn_posix import Popen
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

from pebble import ProcessFuture, ProcessPool

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # each process is one of many: one thread
# Linux kills a child when the thread that started it ends, not the process: this one ends last.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="autotune-starts-processes")


class _Process(SpawnProcess):
    """Spawned without the parent's main module: a script needs no ``if __name__ == "__main__"`` for our sake."""

    @staticmethod
    def _Popen(process_obj: Any) -> Popen:  # noqa: N802  (the name that multiprocessing calls)
        return _starter.submit(_start, process_obj).result()


def _start(process_obj: Any) -> Popen:
    added = {name: "1" for name in THREADS if name not in os.environ}
    os.environ.update(added)
    try:
        with without_main():
            return Popen(process_obj)
    finally:
        for name in added:
            del os.environ[name]


@contextmanager
def without_main() -> Iterator[None]:
    """Processes that are spawned meanwhile import no main module."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class CleanContext(SpawnContext):
    """For pools: ``spawn``, with processes as above."""

    Process = _Process


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C counts when this is over: what it interrupts may hold a lock, or be about to wake somebody up."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # nothing is raised in other threads, nor by handlers that Python does not know
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])


class Pool(ProcessPool):
    """``n_processes``, as above. Ctrl-C in the midst of ``schedule`` could leave its queue such that nobody wakes up
    for the next task, or for the end.
    """

    def __init__(self, n_processes: int, initializer: Any, *arguments: Any) -> None:
        super().__init__(n_processes, context=CleanContext(), initializer=initializer, initargs=arguments)

    def schedule(self, *arguments: Any, **more: Any) -> "ProcessFuture[Any]":
        with uninterrupted():
            return super().schedule(*arguments, **more)

    def end(self) -> None:
        """Stop, whatever is under way."""
        with uninterrupted():
            self.stop()  # type: ignore[no-untyped-call]
            self.join()


T = TypeVar("T")
_Waiting: TypeAlias = "tuple[int, int, Future[Any], Callable[[], ProcessFuture[Any]]]"  # rank, number, what begins it


class RankedPool:
    """``n_processes`` as of ``Pool``, for tasks of several ranks: the lowest that waits goes first.

    What is under way cannot be cancelled: most tasks take less time than a new process to start.
    """

    N_READY = 2  # tasks handed over beyond those under way: no process waits for this one to wake up

    def __init__(self, n_processes: int, initializer: Any, *arguments: Any) -> None:
        self._pool = Pool(n_processes, initializer, *arguments)
        self._most = n_processes + self.N_READY
        self._waiting: list[_Waiting] = []
        self._begun: set[Future[Any]] = set()
        self._number = count()
        self._changing = threading.RLock()

    def schedule(
        self, function: Callable[..., T], arguments: tuple[Any, ...], timeout: float | None = None, rank: int = 0
    ) -> "Future[T]":
        """What becomes of ``function(*arguments)``. ``timeout``: seconds from when it begins."""
        future: Future[T] = Future()
        begin = partial(self._pool.schedule, function, args=arguments, timeout=timeout)
        with uninterrupted():
            with self._changing:
                entry: _Waiting = (rank, next(self._number), future, begin)
                heappush(self._waiting, entry)
            self._hand_over()
        return future

    def end(self) -> None:
        """Stop, whatever is under way; whoever waits is told that it is cancelled."""
        with uninterrupted():
            with self._changing:
                given_up, self._waiting = self._waiting, []
            for *_, future, _begin in given_up:
                future.cancel()
            self._pool.end()
            for future in list(self._begun):  # of those that it stopped it tells some only
                self._settle(future, CancelledError())

    def _hand_over(self) -> None:
        with self._changing:
            while self._waiting and len(self._begun) < self._most:
                *_, future, begin = heappop(self._waiting)
                if future.set_running_or_notify_cancel():
                    self._begun.add(future)
                    begin().add_done_callback(partial(self._pass_on, future))

    def _pass_on(self, future: "Future[Any]", done: "ProcessFuture[Any]") -> None:
        error = CancelledError() if done.cancelled() else done.exception()
        self._settle(future, error, None if error else done.result())
        self._hand_over()

    def _settle(self, future: "Future[Any]", error: BaseException | None, result: Any = None) -> None:
        with self._changing:
            if future not in self._begun:
                return
            self._begun.remove(future)
        if error:
            future.set_exception(error)
        else:
            future.set_result(result)


def n_cpus() -> int:
    """The CPUs that this process may run on, which a batch system or ``taskset`` may have limited."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def die_with_parent(parent: int) -> None:
    """Linux: this process is killed when ``parent`` ends, however it ends. Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def keep_freed_memory() -> None:
    """Let glibc keep what is freed for the next allocation: page faults, of many processes at a time, cost more.

    On a virtual machine of 32 cores a campaign took 28 s so, and 40 s otherwise.
    """
    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, n_bytes in ((-1, 256 << 20), (-2, 16 << 20), (-3, 64 << 20)):  # M_TRIM_THRESHOLD, M_TOP_PAD,
            mallopt(parameter, n_bytes)  # M_MMAP_THRESHOLD: larger arrays go back at once


def serve_quietly(parent: int) -> None:
    """For compile processes: as ``die_with_parent``, and the process that measures goes first on a busy machine."""
    die_with_parent(parent)
    keep_freed_memory()
    os.nice(5)
