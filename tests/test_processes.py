"""Pools of processes: Ctrl-C at any time leaves them in order."""

import os
import signal
import threading
import time
from collections import deque
from typing import Any

import pytest

from autotune.processes import Pool, serve_quietly, uninterrupted


class InterruptedOnce(deque[Any]):
    """The waiters of a condition. Somebody presses Ctrl-C when the first one has been woken up and is still listed."""

    left = 1

    def remove(self, waiter: Any) -> None:
        if self.left:
            self.left = 0
            signal.raise_signal(signal.SIGINT)
        super().remove(waiter)


def ends(pool: Pool) -> bool:
    ending = threading.Thread(target=pool.end, daemon=True)
    ending.start()
    ending.join(30)
    return not ending.is_alive()


def test_interrupted_while_it_takes_a_task_a_pool_still_ends() -> None:
    pool = Pool(1, serve_quietly, os.getpid())
    assert pool.schedule(os.getppid).result() == os.getpid()
    wakes: Any = pool._context.task_queue.not_empty
    while not wakes._waiters:
        time.sleep(0.01)
    wakes._waiters = InterruptedOnce(wakes._waiters)
    with pytest.raises(KeyboardInterrupt):
        pool.schedule(os.getppid)
    time.sleep(0.5)  # whoever was woken up waits again
    assert ends(pool)


def test_ctrl_c_counts_when_it_is_over() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")
    assert done and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_may_be_asked_for_in_any_thread() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done
