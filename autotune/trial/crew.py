"""The processes of a device: one owns it, the others compile. They may stay for the next bench of a script."""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..devices import Target
from ..system.processes import in_forks
from .compile import CompilePool
from .worker import Worker


@dataclass(frozen=True)
class Crew:
    """The processes of one device. Each crew that is ``begun`` must be ended with ``end``.

    ``surroundings``: the working folder and the environment of the processes.
    """

    worker: Worker
    pool: CompilePool
    surroundings: tuple[str, dict[str, str]]

    @staticmethod
    def begun(target: Target, n_processes: int, compile_deadline_s: float, opens: bool) -> "Crew":
        """Returns new processes, which import their modules; with ``opens``, the device's process starts first."""
        surroundings = _surroundings()
        worker = Worker(target)
        if opens:
            worker.begin()
        pool = CompilePool(target, n_processes, compile_deadline_s).__enter__()
        return Crew(worker, pool, surroundings)

    def serves(self, target: Target, n_processes: int, compile_deadline_s: float) -> bool:
        """Returns whether this crew suits a bench of this device, these numbers and the present surroundings."""
        pool = self.pool
        is_enough = pool.n_processes >= n_processes and pool.deadline_s == compile_deadline_s
        return pool.target == target and is_enough and self.surroundings == _surroundings()

    def end(self) -> None:
        """Ends all processes."""
        self.pool.__exit__()
        self.worker.__exit__()


def _surroundings() -> tuple[str, dict[str, str]]:
    return os.getcwd(), dict(os.environ)


@contextmanager
def own_crew(target: Target, n_processes: int, compile_deadline_s: float) -> Iterator[Crew]:
    """Yields the processes of a device, which end with this context."""
    crew = Crew.begun(target, n_processes, compile_deadline_s, opens=False)
    try:
        yield crew
    finally:
        crew.end()


@contextmanager
def staying_crew(target: Target, n_processes: int, compile_deadline_s: float) -> Iterator[Crew]:
    """Yields the processes of a device, which stay for the next call, and end with this process.

    Between two contexts the device's process holds no arrays, but keeps the device open.
    """
    crew = _take()
    if crew is not None and not crew.serves(target, n_processes, compile_deadline_s):
        crew.end()
        crew = None
    crew = crew or Crew.begun(target, n_processes, compile_deadline_s, opens=True)
    try:
        yield crew
    except BaseException:  # the processes may be in the middle of a call
        crew.end()
        raise
    crew.worker.release()
    _keep(crew)


_staying: list[Crew] = []  # the unused crew, if there is one
_changing = threading.Lock()
in_forks(_staying.clear)


def _take() -> Crew | None:
    with _changing:
        return _staying.pop() if _staying else None


def _keep(crew: Crew) -> None:
    with _changing:
        extra = [crew] if _staying else []
        if not extra:
            _staying.append(crew)
    for each in extra:
        each.end()


@atexit.register
def end_staying() -> None:
    """Ends the processes that stay."""
    if (crew := _take()) is not None:
        crew.end()
