"""The resources that sweeps on one device share: its lock, its worker, compile processes and a folder for large files.

A bench is opened once for any number of sweeps. Threads may share it: while one sweep waits for compilers, another uses
the device, for a whole trial at a time (``with bench.turn``). Sweeps get ready in the order of their ranks
(``with bench.getting_ready.held(rank)``), since Python runs only one of them at a time anyway, and the compilers serve
the lowest rank first. So sweeps that start together do not end together, and the compilers always have work.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from itertools import count
from math import inf
from pathlib import Path
from threading import RLock
from typing import Any

from ..core.device import Ceilings
from ..core.errors import Status, TrialFailure
from ..devices import Target
from ..devices.base import Session
from ..system.cache import prune, scratch_dir
from ..system.lock import device_lock
from ..system.processes import n_cpus
from ..system.ranked import RankedLock
from .compile import DEADLINE_S
from .crew import own_crew, staying_crew

CEILINGS_DEADLINE_S = 120.0
NEEDED_RATES = ("bytes_per_s", "flops_per_s")
COMPILE_PROCESSES = max(1, min(64, n_cpus() - 1))


class Bench:
    """One device with its processes.

    Args:
        n_sharing: number of concurrent sweeps on the device; their proposals share the compile processes.
        note: is called with a line when another process uses the device.
        stays: whether the processes stay for the next such bench of this script; the device's process then starts at
            once.
    """

    def __init__(
        self,
        target: Target,
        compile_processes: int = COMPILE_PROCESSES,
        compile_deadline_s: float = DEADLINE_S,
        n_sharing: int = 1,
        note: Callable[[str], None] = lambda text: None,
        stays: bool = False,
    ) -> None:
        self.target = target
        self.compile_processes = compile_processes
        self.n_ahead = -(-compile_processes // n_sharing) + 2  # proposals of one sweep that wait for compilers
        self.turn = RLock()
        self.getting_ready = RankedLock()
        self._compile_deadline_s = compile_deadline_s
        self._note, self._stays = note, stays
        self._stack = ExitStack()
        self.is_open = False
        self.ceilings: Ceilings | None = None  # the measured roofline, once the device is open
        self._comers = count()

    def __enter__(self) -> "Bench":
        """Waits for the device's lock, and starts the processes."""
        with ExitStack() as stack:
            self._scratch = stack.enter_context(scratch_dir())
            stack.enter_context(device_lock(self.target.module.lock_name(self.target.identifier), self._note))
            crew = (staying_crew if self._stays else own_crew)(
                self.target, self.compile_processes, self._compile_deadline_s
            )
            self.worker, self.pool = (each := stack.enter_context(crew)).worker, each.pool
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
        for kind in self.target.module.defaults.caches:
            prune(kind)

    def open(self) -> None:
        """Opens the device and measures its roofline, on the first call only."""
        with self.turn:
            if not self.is_open:
                try:
                    self.ceilings = self.worker.call(_ceilings, deadline_s=CEILINGS_DEADLINE_S)
                except TrialFailure as failure:
                    if failure.status != Status.DEFINITION_FAILED:
                        raise
                    self._note(f"{self.target.device.name} has no measured roofline: {failure.message}")
                self.is_open = True

    def join(self) -> int:
        """Returns the rank of one more sweep, larger than all earlier ones; its compiles have this rank."""
        return next(self._comers)

    def folder(self, rank: int) -> Path:
        """Returns the folder of the sweep with this rank; it is deleted with the bench."""
        return self._scratch / str(rank)


def _ceilings(session: Session) -> Ceilings | None:
    found = session.ceilings()
    if found is None:
        return None
    if not isinstance(found, Ceilings):
        raise TypeError(f"ceilings() returns {found!r:.60}, which is not a Ceilings")
    for name, rate in asdict(found).items():
        if not isinstance(rate, float | int) or not 0 <= rate < inf or (name in NEEDED_RATES and rate == 0):
            raise ValueError(f"ceilings() has {name}={rate!r:.60}")
    return found
