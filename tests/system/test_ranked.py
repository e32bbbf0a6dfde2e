"""A lock that goes to the lowest rank that waits."""

import threading
import time
from collections.abc import Callable

import pytest

from autotune.system.ranked import RankedLock

from ..waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.quick


def begun(target: Callable[[int], None], rank: int) -> threading.Thread:
    thread = threading.Thread(target=target, args=(rank,), daemon=True)
    thread.start()
    return thread


def test_the_lowest_rank_that_waits_is_next() -> None:
    lock, order = RankedLock(), list[int]()

    def take(rank: int) -> None:
        with lock.held(rank):
            order.append(rank)

    with lock.held(9):
        threads = [begun(take, rank) for rank in (5, 2, 7, 1)]
        wait_until(lambda: len(lock._waiting) == 4)
    for thread in threads:
        thread.join(DEADLINE_S)
    assert order == [1, 2, 5, 7]


def test_one_has_it_at_a_time() -> None:
    lock, n_inside, most = RankedLock(), 0, 0

    def take(rank: int) -> None:
        nonlocal n_inside, most
        with lock.held(rank):
            n_inside += 1
            most = max(most, n_inside)
            time.sleep(0.002)
            n_inside -= 1

    for thread in [begun(take, rank) for rank in range(12)]:
        thread.join(DEADLINE_S)
    assert most == 1 and n_inside == 0


def test_who_fails_gives_it_back() -> None:
    lock = RankedLock()
    with pytest.raises(ValueError, match="no"), lock.held(0):
        raise ValueError("no")
    with lock.held(1):
        pass
