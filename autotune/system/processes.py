"""Worker processes, which do not re-run the user's script, end with their parent, and are replaced if they die."""

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.popen_spawn_posix import Popen
from types import ModuleType
from typing import Any, TypeVar, cast

from ..core.errors import UsageError

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15  # linux/prctl.h
START_DEADLINE_S = 120.0  # deadline for a process to become ready: imports, a driver, a context
LAST_WORDS_S = 10.0  # a process whose pipe has closed ends at once, unless the machine is busy
STEP, DONE, FAILED, DIED, LATE = "step", "done", "failed", "died", "late"  # steps and ends of a task
FORKED = "make it again in the fork"
DAEMON = "use threads, or concurrent.futures.ProcessPoolExecutor"
MOST_STARTS = 3  # consecutive processes that may die before they are ready
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # 1, since there are many processes


def in_forks(function: Callable[[], object]) -> None:
    """Lets each fork of this process call ``function`` first, which forgets what only this process has: threads."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def check_owner(pid: int) -> None:
    """Raises UsageError unless this process has this number; a fork of it may not use its processes."""
    if os.getpid() != pid:
        raise UsageError(f"these processes belong to process {pid}, of which this is a fork; {FORKED}")


class _Starter:
    """The thread that starts processes: Linux kills a child when the thread that started it ends, so it ends last."""

    def __init__(self) -> None:
        self._begin()
        in_forks(self._begin)

    def _begin(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="autotune-starts-processes")

    def start(self, process: object) -> Popen:
        return self._thread.submit(_start, process).result()


_starter = _Starter()


class _Process(SpawnProcess):
    """A process spawned without the parent's main module, so scripts need no ``if __name__ == "__main__"``."""

    @staticmethod
    def _Popen(process_obj: object) -> Popen:  # noqa: N802  (the name that multiprocessing calls)
        return _starter.start(process_obj)


def _start(process_obj: Any) -> Popen:
    added = [name for name in THREADS if name not in os.environ]
    for name in added:
        os.putenv(name, "1")  # this leaves os.environ, which other threads may read now, as it is
    try:
        with without_main():
            return Popen(process_obj)
    finally:
        for name in added:
            os.unsetenv(name)


@contextmanager
def without_main() -> Iterator[None]:
    """Prevents processes spawned in this context from importing the main module."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


T = TypeVar("T")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delays Ctrl-C until the end of this context, which may hold a lock or be about to notify a thread."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # neither other threads nor handlers outside Python raise KeyboardInterrupt here
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])


class Died(Exception):
    """All processes that tried a task ended; ``str`` says how: ``SIGKILL (Killed)`` or ``exit code 0``."""


class Child:
    """A process that runs one task at a time, and is replaced by a new one if it dies. Any thread may call it.

    Threads take turns: a task has the process until its result, or the last of its steps, has been taken. It belongs
    to the process that made it, and a fork of that process cannot use it.

    A death is noticed at once, even when the process is idle, and does not affect others: processes share neither
    locks, which one could still hold, nor pipes, in which it could leave half a message.

    Args:
        name: the name of the process in `top` and `ps`; at most 15 characters.
        initializer: the function that the process calls first, with ``arguments``; an exception in it is a death.
        tries: number of processes that may die of one task.
    """

    def __init__(self, name: str, initializer: Callable[..., object], *arguments: object, tries: int = 2) -> None:
        self._name, self._initializer, self._arguments, self._tries = name, initializer, arguments, tries
        self._owner = os.getpid()
        self._turn = threading.Lock()  # the thread whose task is running has it
        self._changing = threading.Lock()  # one thread may end it while another uses it
        self._process: _Process | None = None
        self._pipe: Connection | None = None
        self._is_ready = False  # whether the process has reported that it waits for a task
        self._ended = False

    def begin(self) -> None:
        """Starts the process without waiting until it is ready; the first call waits."""
        if self._process is None:
            self._start()

    def call(self, function: Callable[..., T], arguments: tuple[object, ...], timeout: float | None = None) -> T:
        """Runs ``function(*arguments)`` in the process and returns its result. If the process dies, tries again.

        Raises:
            Died: when the last of ``tries`` processes died, too, or none could be started.
            TimeoutError: after ``timeout`` seconds; the process is stopped.
            Exception: any exception of the function.
        """
        *_, (_, result) = self._answers(function, arguments, timeout)
        return cast(T, result)

    def steps(
        self, function: Callable[..., Iterator[T]], arguments: tuple[object, ...], timeout: float | None
    ) -> Iterator[T]:
        """Runs a generator as ``call`` runs a function, and yields its values as they arrive.

        ``timeout`` applies to each step. If a task is tried again, all of its steps are yielded again.
        """
        for kind, value in self._answers(function, arguments, timeout):
            if kind == STEP:
                yield value

    def _answers(
        self, function: Callable[..., Any], arguments: tuple[object, ...], timeout: float | None
    ) -> Iterator[tuple[str, Any]]:
        """Yields each STEP of a task and finally DONE with its result. Raises as ``call`` does."""
        check_owner(self._owner)
        task = pickle.dumps((function, arguments))
        with self._turn:
            for n_left in reversed(range(self._tries)):
                pipe, sentinel = self._ready()
                kind = STEP
                try:
                    for kind, value in _ask(pipe, sentinel, task, timeout):
                        if kind == FAILED:
                            kind = STEP if getattr(value, "sticky", False) else kind
                            raise value
                        if kind in (STEP, DONE):
                            yield kind, value
                finally:
                    if kind == STEP:  # its context is poisoned, or the answer would be taken for that of the next task
                        self.stop()
                if kind == DONE:
                    return
                how = self.stop(LAST_WORDS_S if kind == DIED else 0.0)
                if kind == LATE:
                    raise TimeoutError(f"no answer within {timeout:g} s")
                if not n_left or self._ended:
                    raise Died(how)

    def stop(self, wait_s: float = 0.0) -> str:
        """Kills the process and its children; the next call starts another one. Returns how it ended.

        ``wait_s``: time in which it may still end by itself, since a pipe closes a little before its process ends.
        """
        if os.getpid() != self._owner:
            return "another process has it"
        with self._changing:
            process, self._process = self._process, None
            pipe, self._pipe = self._pipe, None
        if process is None:
            return "it had ended"
        process.join(wait_s)
        how = _cause(process.exitcode)
        _kill(process)
        process.join()
        if pipe is not None:
            pipe.close()
        return how or _cause(process.exitcode)

    def kill(self) -> None:
        """Kills the process for good, without waiting for its end."""
        self._ended = True
        with self._changing:
            process = self._process
        if process is not None and os.getpid() == self._owner:
            _kill(process)

    def end(self) -> None:
        """Stops for good; a running call raises Died."""
        self._ended = True
        self.stop()

    def _ready(self) -> tuple[Connection, int]:
        """Returns the pipe to a process that waits for a task, and the sentinel that becomes readable when it ends."""
        with self._changing:
            process, pipe = self._process, self._pipe
        is_there = process is not None and pipe is not None and process.is_alive()
        if is_there and self._is_ready:
            assert process is not None and pipe is not None
            return pipe, process.sentinel
        if not is_there:
            self.stop()
        how = ""
        for _ in range(MOST_STARTS):
            if self._ended:
                raise Died("it was told to end")
            if not is_there:
                process, pipe = self._start()
            assert process is not None and pipe is not None
            is_there = False
            with suppress(EOFError, OSError):
                if wait((pipe, process.sentinel), START_DEADLINE_S):
                    pipe.recv_bytes()
                    self._is_ready = True
                    return pipe, process.sentinel
            how = self.stop(LAST_WORDS_S)  # a pipe closes a little before its process ends
        raise Died(f"{MOST_STARTS} processes could not be started, the last one: {how}")

    def _start(self) -> tuple[_Process, Connection]:
        """Starts a process; it sends a message when it is ready."""
        if multiprocessing.current_process().daemon:
            raise UsageError(f"{self._name} cannot be started by a worker of multiprocessing.Pool; {DAEMON}")
        ours, its = SpawnContext().Pipe()
        process = _Process(target=_serve, args=(its, os.getpid(), self._name, self._initializer, self._arguments))
        process.daemon = True  # multiprocessing ends it at exit in any case
        process.start()
        its.close()
        with self._changing:
            self._process, self._pipe, self._is_ready = process, ours, False
        if self._ended:
            self.stop()
        return process, ours


def _kill(process: _Process) -> None:
    assert process.pid is not None
    for kill in (partial(os.killpg, process.pid, signal.SIGKILL), process.kill):  # the first fails while it starts
        with suppress(OSError):
            kill()


def _serve(
    pipe: Connection, parent: int, name: str, initializer: Callable[..., None], arguments: tuple[object, ...]
) -> None:
    """Runs in a Child's process until it ends."""
    _prctl(PR_SET_NAME, name.encode())
    os.setsid()  # its own session: it dies with its children, and Ctrl-C reaches only the parent
    die_with_parent(parent)
    os.dup2(2, 1)  # prints of kernels and definitions must not mix with the data on the parent's stdout
    initializer(*arguments)
    with suppress(EOFError, OSError):  # the parent has stopped it, or has ended
        pipe.send_bytes(b"ready")
        _serve_tasks(pipe)


def _serve_tasks(pipe: Connection) -> None:
    """Runs tasks until the pipe is closed, which raises EOFError or OSError."""
    while True:
        task = pipe.recv_bytes()
        try:
            function, given = pickle.loads(task)
            result = function(*given)
            if isinstance(result, Generator):
                for step in result:
                    pipe.send_bytes(pickle.dumps((STEP, step)))
                result = None
            answer = pickle.dumps((DONE, result))
        except BaseException as error:  # sys.exit() in a definition ends its task, not this process
            answer = _failure(error)
        pipe.send_bytes(answer)


def _ask(pipe: Connection, sentinel: int, task: bytes, timeout: float | None) -> Iterator[tuple[str, Any]]:
    """Sends a task and yields its steps, each as STEP and a value, and finally its end.

    The end is DONE and the result, FAILED and the exception, or DIED or LATE and None.
    """
    kind, value = STEP, None
    try:
        pipe.send_bytes(task)
    except OSError:
        kind = DIED
    while kind == STEP:
        try:
            came = wait((pipe, sentinel), timeout)
            answer = pipe.recv_bytes() if pipe in came else b""
            kind, value = pickle.loads(answer) if answer else (DIED if came else LATE, None)
        except (EOFError, OSError):
            kind, value = DIED, None
        if kind == STEP:
            yield kind, value
    yield kind, value


def _failure(error: BaseException) -> bytes:
    """Pickles ``error``, with its traceback, for the parent; as a RuntimeError if it cannot be unpickled."""
    error.add_note(traceback.format_exc())
    if isinstance(error, Exception):
        with suppress(Exception):  # copying a user's exception may raise anything
            pickle.loads(answer := pickle.dumps((FAILED, error)))
            return answer
    return pickle.dumps((FAILED, RuntimeError(f"{type(error).__name__}: {error}")))


def _cause(exitcode: int | None) -> str:
    """Returns how a process ended; "" while it runs."""
    if exitcode is None:
        return ""
    if exitcode < 0:
        return f"{signal.Signals(-exitcode).name} ({signal.strsignal(-exitcode)})"
    return f"exit code {exitcode}"


@dataclass(order=True)
class _Task:
    rank: int
    number: int
    future: "Future[Any]" = field(compare=False)
    function: Callable[..., Any] = field(compare=False)
    arguments: tuple[object, ...] = field(compare=False)
    timeout: float | None = field(compare=False)


class RankedPool:
    """A pool of ``n_processes`` Child processes for tasks with ranks: the waiting task with the lowest rank goes first.

    A running task cannot be cancelled, since most tasks take less time than the start of a new process.
    """

    def __init__(self, n_processes: int, name: str, initializer: Callable[..., None], *arguments: object) -> None:
        self._owner = os.getpid()
        self._changing = threading.Condition()
        self._waiting: list[_Task] = []
        self._number = count()
        self._ended = False
        self._children = [Child(name, initializer, *arguments) for _ in range(n_processes)]
        self._threads = [
            threading.Thread(target=self._serve, args=(child,), name="autotune-pool", daemon=True)
            for child in self._children
        ]
        for thread in self._threads:
            thread.start()

    def schedule(
        self, function: Callable[..., T], arguments: tuple[object, ...], timeout: float | None = None, rank: int = 0
    ) -> "Future[T]":
        """Returns the future of ``function(*arguments)``, which ends as ``Child.call`` does.

        ``timeout`` counts from the start of the task.
        """
        check_owner(self._owner)
        future: Future[T] = Future()
        with uninterrupted(), self._changing:
            if self._ended:
                future.cancel()
            else:
                heappush(self._waiting, _Task(rank, next(self._number), future, function, arguments, timeout))
                self._changing.notify()
        return future

    def end(self) -> None:
        """Stops all tasks; waiting and running ones end with CancelledError."""
        with uninterrupted():
            with self._changing:
                self._ended = True
                given_up, self._waiting = self._waiting, []
                self._changing.notify_all()
            for task in given_up:
                task.future.cancel()
            for child in self._children:
                child.kill()
            for child in self._children:
                child.end()
            for thread in self._threads:
                thread.join()

    def _serve(self, child: Child) -> None:
        """Runs tasks in the thread of one process."""
        while (task := self._next()) is not None:
            if not task.future.set_running_or_notify_cancel():
                continue
            try:
                result = child.call(task.function, task.arguments, task.timeout)
            except Exception as error:
                task.future.set_exception(CancelledError() if self._ended else error)
            else:
                task.future.set_result(result)

    def _next(self) -> _Task | None:
        with self._changing:
            self._changing.wait_for(lambda: self._waiting or self._ended)
            return None if self._ended else heappop(self._waiting)


def n_cpus() -> int:
    """Returns the number of CPUs on which this process may run; a batch system or ``taskset`` may limit them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def die_with_parent(parent: int) -> None:
    """Makes Linux kill this process when ``parent`` ends in any way. Only the parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: object) -> None:
    """Calls prctl on Linux; does nothing elsewhere."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(option, value)


def keep_freed_memory() -> None:
    """Makes glibc keep freed memory for the next allocation, since page faults of many processes at a time cost more.

    On a virtual machine with 32 cores a campaign took 28 s with this, and 40 s without.
    """
    with suppress(AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, n_bytes in ((-1, 256 << 20), (-2, 16 << 20), (-3, 64 << 20)):  # M_TRIM_THRESHOLD, M_TOP_PAD,
            mallopt(parameter, n_bytes)  # M_MMAP_THRESHOLD: larger arrays go back at once


def work_quietly() -> None:
    """Lowers the priority of this compile process, so that the measuring process goes first."""
    keep_freed_memory()
    os.nice(5)
