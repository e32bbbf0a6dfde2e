"""The code of a campaign's worker processes, one per device: each runs several sweeps at a time on one bench.

While one sweep waits for its compilers, another uses the device. If a process dies, only its current trials are lost:
the sweeps resume in the process that replaces it.
"""

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock, Thread

from distributed import WorkerPlugin
from distributed.worker import Worker

from ..core.errors import UsageError
from ..devices import Target, find_device
from ..records.trial import Trial
from ..source.registry import load_kernel
from ..sweep.progress import Quiet
from ..sweep.run import run_sweep
from ..sweep.settings import Settings
from ..system.memory import check_memory
from ..system.processes import keep_freed_memory, n_cpus
from ..trial.bench import Bench

DEVICE_VARIABLE = "AUTOTUNE_DEVICE"  # environment variable: the device of a worker process
COMPILE_PROCESSES = "AUTOTUNE_COMPILE_PROCESSES"
SHARING = "AUTOTUNE_SHARING"  # environment variable: concurrent sweeps


@dataclass(frozen=True)
class Task:
    """One sweep."""

    kernel: str
    problem: dict[str, object]
    settings: Settings


@dataclass(frozen=True)
class TaskResult:
    """The result of one task. ``error``: why there is no winner, or ""."""

    problem: dict[str, object]
    device: str
    path: str = ""
    median_s: float | None = None
    speed_up: float | None = None
    n_recorded: int = 0  # trials recorded before this sweep
    n_new: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)  # all trials by status
    spent_s: Mapping[str, float] = field(default_factory=dict)
    compile_s: float = 0.0  # compile time of the new trials
    compile_processes: int = 0  # compile processes of the device
    wall_s: float = 0.0
    error: str = ""

    def then(self, later: "TaskResult") -> "TaskResult":
        """Merges two sweeps of one problem: the result of the later sweep, with the time and the trials of both."""
        spent = Counter(self.spent_s)
        spent.update(later.spent_s)
        return replace(
            later,
            n_recorded=self.n_recorded,
            n_new=self.n_new + later.n_new,
            spent_s=dict(spent),
            compile_s=self.compile_s + later.compile_s,
            wall_s=self.wall_s + later.wall_s,
        )


class OneBench(WorkerPlugin):
    """A Dask plugin that holds the bench of this process. The bench opens with the campaign and closes with it.

    Args:
        found: name of each device -> the device and its number of compile processes, so that a worker need not look
            for its device.
    """

    name = "autotune-bench"
    idempotent = True
    found: Mapping[str, tuple[Target, int]] = {}
    _bench: Bench | None = None
    _opening = Lock()

    def __init__(self, found: Mapping[str, tuple[Target, int]] | None = None) -> None:
        self._found = dict(found or {})

    def setup(self, worker: Worker) -> None:
        OneBench.found = self._found
        Thread(target=_open_early, daemon=True).start()

    @classmethod
    def bench(cls) -> Bench:
        with cls._opening:
            if cls._bench is None:
                keep_freed_memory()
                target, n_processes = found_here()
                bench = Bench(target, n_processes, n_sharing=int(os.environ.get(SHARING, "1")))
                cls._bench = bench.__enter__()
            return cls._bench

    def teardown(self, worker: Worker) -> None:
        if OneBench._bench is not None:
            OneBench._bench.__exit__(None, None, None)
            OneBench._bench = None


def _open_early() -> None:
    with suppress(UsageError):  # the first sweep raises it again and reports it
        OneBench.bench()


def found_here() -> tuple[Target, int]:
    """Returns the device of this process and its number of compile processes."""
    name = os.environ.get(DEVICE_VARIABLE, "auto")
    if name in OneBench.found:
        return OneBench.found[name]
    return find_device(name), int(os.environ.get(COMPILE_PROCESSES, max(1, n_cpus() - 1)))


def target_here() -> Target:
    """Returns the device of this process."""
    return found_here()[0]


class _Counter(Quiet):
    n_before = n_new = 0
    compile_s = 0.0

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        self.n_before = n_done

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        self.n_new += 1
        self.compile_s += trial.compile_s or 0.0


def run_task(task: Task, earlier: TaskResult | None = None) -> TaskResult:
    """Runs one sweep on this process's device; Dask waits for ``earlier`` before it calls this function."""
    began = time.monotonic()
    device = os.environ.get(DEVICE_VARIABLE, "auto")
    try:
        bench = OneBench.bench()
        kernel = load_kernel(task.kernel)
        problem = kernel.problem(task.problem)
        check_memory(kernel, problem)
        counter = _Counter()
        sweep = run_sweep(kernel, problem, bench, task.settings, counter)
    except UsageError as error:  # only this problem cannot be tuned
        return TaskResult(task.problem, device, wall_s=time.monotonic() - began, error=str(error))
    best = sweep.best
    return TaskResult(
        problem=task.problem,
        device=bench.target.identifier,
        path=str(sweep.path),
        median_s=best.median_s if best else None,
        speed_up=sweep.speed_up,
        n_recorded=counter.n_before,
        n_new=counter.n_new,
        counts=dict(sweep.counts),
        spent_s=dict(sweep.spent_s),
        compile_s=counter.compile_s,
        compile_processes=bench.compile_processes,
        wall_s=time.monotonic() - began,
        error="" if best else "no config passed verification and was timed",
    )
