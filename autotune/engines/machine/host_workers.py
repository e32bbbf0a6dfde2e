"""Threads on the host's cores, which do the pieces of one step of an engine's work in parallel."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from ...system.processes import n_cpus

T = TypeVar("T")
R = TypeVar("R")


class HostWorkers:
    """Threads for pieces of work in NumPy, which releases Python's lock: one for each usable core.

    They start with the first step of several pieces, on the cores of the calling thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._n = 1

    def each(self, work: Callable[[T], R], pieces: Sequence[T]) -> list[R]:
        """Returns ``work(piece)`` for each piece, in order. Raises what ``work`` raises."""
        with self._lock:
            if self._pool is None and len(pieces) > 1:
                self._n = n_cpus()
                self._pool = ThreadPoolExecutor(self._n, "host")
            pool = self._pool
        if pool is None or self._n == 1 or len(pieces) < 2:
            return [work(piece) for piece in pieces]
        return list(pool.map(work, pieces))
