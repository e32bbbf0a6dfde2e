"""A lock for sweeps that share a bench: the lowest rank that waits gets it next."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class RankedLock:
    """Not reentrant; ranks of threads that wait beside each other differ."""

    def __init__(self) -> None:
        self._changing = Condition()
        self._waiting: set[int] = set()
        self._is_taken = False

    @contextmanager
    def held(self, rank: int) -> Iterator[None]:
        """Wait for the lock, and release it at the end."""
        with self._changing:
            self._waiting.add(rank)
            try:
                self._changing.wait_for(lambda: not self._is_taken and min(self._waiting) == rank)
                self._is_taken = True
            finally:
                self._waiting.remove(rank)
                self._changing.notify_all()
        try:
            yield
        finally:
            with self._changing:
                self._is_taken = False
                self._changing.notify_all()
