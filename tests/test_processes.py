"""Pools of processes: Ctrl-C at any time leaves them in order."""

import os
import signal
import threading
import time
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, wait
from typing import Any

import pytest

from autotune.processes import Pool, RankedPool, serve_quietly, uninterrupted


class InterruptedOnce(deque[Any]):
    """The waiters of a condition. Somebody presses Ctrl-C when the first one has been woken up and is still listed."""

    left = 1

    def remove(self, waiter: Any) -> None:
        if self.left:
            self.left = 0
            signal.raise_signal(signal.SIGINT)
        super().remove(waiter)


def ends(pool: Pool | RankedPool) -> bool:
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


def test_the_lowest_rank_that_waits_goes_first() -> None:
    pool = RankedPool(1, serve_quietly, os.getpid())
    order: list[int] = []
    first = [pool.schedule(time.sleep, (0.3,), rank=9) for _ in range(1 + RankedPool.N_READY)]  # under way
    tasks = []
    for rank in (5, 1, 3, 1):
        tasks.append(pool.schedule(os.getppid, (), rank=rank))
        tasks[-1].add_done_callback(lambda _, rank=rank: order.append(rank))
    dropped = pool.schedule(os.getppid, (), rank=0)
    assert dropped.cancel()
    wait([*first, *tasks], timeout=60)
    assert order == [1, 1, 3, 5]
    assert ends(pool)


def test_what_fails_in_a_process_is_raised_here() -> None:
    pool = RankedPool(1, serve_quietly, os.getpid())
    with pytest.raises(ZeroDivisionError):
        pool.schedule(divmod, (1, 0)).result(60)
    with pytest.raises(TimeoutError):
        pool.schedule(time.sleep, (60,), timeout=0.2).result(60)
    assert pool.schedule(os.getppid, ()).result(60) == os.getpid()
    assert ends(pool)


def test_who_waits_when_a_pool_ends_is_told() -> None:
    pool = RankedPool(1, serve_quietly, os.getpid())
    tasks = [pool.schedule(time.sleep, (60,)) for _ in range(8)]
    assert ends(pool)
    for task in tasks:
        with pytest.raises((CancelledError, BrokenExecutor)):
            task.result(60)
