"""The cores of a host: pieces of one step of an engine's work are done side by side, and waited for."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from ...system.processes import n_cpus

T = TypeVar("T")
R = TypeVar("R")


class HostWorkers:
    """Threads for pieces of work in NumPy, which computes without Python's lock: as many as there are usable cores.

    They are started by the first step of several pieces, and run on the cores of the thread that asked for it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._n = 1

    def each(self, work: Callable[[T], R], pieces: Sequence[T]) -> list[R]:
        """Returns what ``work`` returns of each piece, in their order; what it raises is raised here."""
        with self._lock:
            if self._pool is None and len(pieces) > 1:
                self._n = n_cpus()
                self._pool = ThreadPoolExecutor(self._n, "host")
            pool = self._pool
        if pool is None or self._n == 1 or len(pieces) < 2:
            return [work(piece) for piece in pieces]
        return list(pool.map(work, pieces))
