"""The threads of an engine. They end together: with the source, after an error in one of them, or on request."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from .cores import ThreadCores, bind, bound
from .queues import POLL_S, Ending, Stopped

ThreadTasks = Mapping[str, Callable[[], None]]  # the functions of threads, by thread name
GRACE_S = 0.5  # a source may read so long after the engine has ended


def run_beside(
    ending: Ending,
    readers: ThreadTasks,
    writers: ThreadTasks,
    compute: Callable[[], None],
    finish: Callable[[], None],
    cores: ThreadCores,
) -> None:
    """Runs ``compute`` while readers and writers run in threads autotune-NAME, and ``finish`` after they have ended.

    ``cores`` binds the threads that it names, and the caller's while it computes.

    After the first Ctrl-C the engine takes no more chunks, but finishes the one in flight. A reader that still waits
    for a silent source which nothing wakes is left running: its thread ends when the source does.

    Raises:
        Exception: the first error of any of these functions.
    """
    try:
        with ended_by([signal.SIGINT], ending.asked.set), ExitStack() as stack:
            for name, work in writers.items():
                stack.enter_context(thread(f"autotune-{name}", work, ending, cores.of(name)))
            for name, work in readers.items():
                stack.enter_context(thread(f"autotune-{name}", work, ending, cores.of(name), is_reader=True))
            with bound(cores.of("compute")):  # only now, since a new thread inherits the cores of its creator
                compute()
    except Stopped:  # the error of a thread is raised below
        pass
    finally:
        finish()
    if ending.error is not None:
        raise ending.error


@contextmanager
def ended_by(numbers: Sequence[signal.Signals], stop: Callable[[], None]) -> Iterator[None]:
    """Makes the first of these signals in this block call ``stop``; the second one acts as before.

    It works in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}

    def once(number: int, _: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop()

    for number in before:
        signal.signal(number, once)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def sleep_unless(asked: threading.Event, seconds: float) -> None:
    """Sleeps until ``asked`` is set. Its ``wait`` holds a lock, on which a signal's handler that sets it would hang."""
    end = time.monotonic() + seconds
    while not asked.is_set() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, POLL_S))


@contextmanager
def thread(
    name: str, run: Callable[[], None], ending: Ending, cores: Sequence[int] = (), is_reader: bool = False
) -> Iterator[threading.Thread]:
    """Runs ``run`` in a thread during the block. An error in it ends the engine.

    Args:
        cores: the cores of the thread; none means any.
        is_reader: whether it reads a source, which may be silent; then an early end does not wait for the thread.
    """

    def guarded() -> None:
        try:
            bind(cores)
            run()
        except Stopped:
            return
        except BaseException as error:  # the thread that waits for this one raises it
            ending.fail(error)

    worker = threading.Thread(target=guarded, name=name, daemon=True)
    worker.start()
    try:
        yield worker
    except BaseException:
        ending.failed.set()
        raise
    finally:
        while worker.is_alive() and not (is_reader and ending.is_near):
            worker.join(POLL_S)
        for wake in ending.wakes if is_reader else ():
            wake()  # a thread that still waits in spead2 when the interpreter ends can crash it
        worker.join(GRACE_S)
