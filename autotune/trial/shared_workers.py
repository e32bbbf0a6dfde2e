"""The processes that all calls of ``autotune.run`` in this process share."""

import atexit
import threading

from ..devices import Target
from ..system.processes import in_forks
from .worker import Worker


class SharedWorkers:
    """Owns one ``Worker`` for each device. Any thread may ask for it, and threads take turns with its process.

    The workers stay for the next call, and end with this process. A fork begins without any.
    """

    def __init__(self) -> None:
        self._begin()
        in_forks(self._begin)
        atexit.register(self.end)

    def _begin(self) -> None:
        self._changing = threading.Lock()
        self._workers: dict[str, Worker] = {}

    def of(self, target: Target) -> Worker:
        """Returns the worker of a device."""
        with self._changing:
            if target.identifier not in self._workers:
                self._workers[target.identifier] = Worker(target)
            return self._workers[target.identifier]

    def end(self) -> None:
        """Ends all workers; a later call starts them again."""
        with self._changing:
            workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.__exit__()


SHARED = SharedWorkers()
