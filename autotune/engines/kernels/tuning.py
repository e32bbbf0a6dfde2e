"""Tunes a kernel for an engine before it starts: a short sweep on its device, with plain lines of progress."""

import time
from collections.abc import Callable
from pathlib import Path

from ...core.definition import AnyKernel
from ...core.errors import Status
from ...core.problem import Problem
from ...devices import find_device
from ...records.trial import Trial
from ...sweep.progress import Quiet
from ...sweep.run import run_sweep
from ...sweep.settings import Settings, effort
from ...system.memory import check_memory
from ...trial.bench import Bench

LINE_EVERY_S = 5.0


class LineProgress(Quiet):
    """Tells a line now and then."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._n_total, self._n_failed, self._last = tell, 0, 0, time.monotonic()

    def note(self, text: str) -> None:
        self._tell(text)

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        self._n_total = n_total
        self.note(f"tuning {title}" + (f"; {n_done} trials already recorded" if n_done else ""))

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        self._n_failed += trial.status != Status.MEASURED
        if time.monotonic() - self._last < LINE_EVERY_S and n_done < self._n_total:
            return
        self._last = time.monotonic()
        fastest = f"best {1e6 * best.median_s:.4g} us" if best and best.median_s else "no config timed yet"
        failed = f"; {self._n_failed} failed" if self._n_failed else ""
        self.note(f"  trial {n_done} of {self._n_total}: {fastest}{failed}")

    def finalists(self, n: int) -> None:
        self.note(f"  final round: measuring the best {n} configs again")


def tune(
    kernel: AnyKernel, problem: Problem, device: str, effort_name: str, results: Path, tell: Callable[[str], None]
) -> None:
    """Sweep ``kernel`` for ``problem`` on the device of that name, and record it. A recorded sweep is continued.

    Raises:
        UsageError: for an empty space, arrays that do not fit into memory, or a record that cannot be written.
        KeyboardInterrupt: when the sweep is interrupted; recorded trials stay.
    """
    check_memory(kernel, problem)
    with Bench(find_device(device), note=tell) as bench:
        sweep = run_sweep(kernel, problem, bench, Settings(results=results, **effort(effort_name)), LineProgress(tell))
    if sweep.interrupted:
        raise KeyboardInterrupt
    if sweep.best is None:
        tell(f"tuning {kernel.name}: no config was correct; see {sweep.path}")
