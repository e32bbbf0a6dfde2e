"""Threads of an engine, which end together: with the source, at an error of any of them, or when they are asked to."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from .cores import ThreadCores, bind, bound
from .queues import POLL_S, Ending, Stopped

ThreadTasks = Mapping[str, Callable[[], None]]  # what threads run, by their names
GRACE_S = 0.5  # how long a source may go on reading when the engine has ended


def run_beside(
    ending: Ending,
    readers: ThreadTasks,
    writers: ThreadTasks,
    compute: Callable[[], None],
    finish: Callable[[], None],
    cores: ThreadCores,
) -> None:
    """Runs ``compute`` beside readers and writers, each in a thread, autotune-NAME, and ``finish`` when all have ended.

    A thread that ``cores`` names runs on those; so does the caller's, while it computes.

    The first Ctrl-C lets the engine take no more chunks; the one in flight is finished. A reader whose source is silent
    then is left behind: its thread ends when the source does.

    Raises:
        Exception: the first error of any of them.
    """
    try:
        with ended_by_ctrl_c(ending.asked.set), ExitStack() as stack:
            for name, work in writers.items():
                stack.enter_context(thread(f"autotune-{name}", work, ending, cores.of(name)))
            for name, work in readers.items():
                stack.enter_context(thread(f"autotune-{name}", work, ending, cores.of(name), is_reader=True))
            with bound(cores.of("compute")):  # not before: a thread begins with the cores of the one that starts it
                compute()
    except Stopped:  # the error of a thread is raised below
        pass
    finally:
        finish()
    if ending.error is not None:
        raise ending.error


@contextmanager
def ended_by_ctrl_c(stop: Callable[[], None]) -> Iterator[None]:
    """Lets the first Ctrl-C in this block call ``stop``; the second one is as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def once(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def thread(
    name: str, run: Callable[[], None], ending: Ending, cores: Sequence[int] = (), is_reader: bool = False
) -> Iterator[threading.Thread]:
    """Runs ``run`` beside the block, and ends with it; an error in it ends the engine.

    Args:
        cores: those that it runs on; none: any.
        is_reader: it may be waiting for a source that gives nothing, and is not waited for when the engine ends early.
    """

    def guarded() -> None:
        try:
            bind(cores)
            run()
        except Stopped:
            return
        except BaseException as error:  # told by the thread that waits for this one
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
        worker.join(GRACE_S)
