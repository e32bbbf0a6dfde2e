"""A lock for sweeps that share a bench: of the waiting threads, the one with the lowest rank gets it next."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class RankedLock:
    """A lock with ranks. It is not reentrant, and waiting threads must have different ranks."""

    def __init__(self) -> None:
        self._changing = Condition()
        self._waiting: set[int] = set()
        self._is_taken = False

    @contextmanager
    def held(self, rank: int) -> Iterator[None]:
        """Waits for the lock, and releases it at the end."""
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
