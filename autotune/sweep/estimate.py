"""Estimates how long a sweep will take from the duration of recorded trials."""

from dataclasses import dataclass
from pathlib import Path

from ..core.definition import Device, Kernel
from ..core.problem import Problem
from ..core.units import counted
from ..devices import device_module
from ..records.folder import SWEEP, SweepFolder
from ..records.paths import kernel_path

N_SWEEPS = 3  # how many of the newest sweeps count


@dataclass(frozen=True)
class Estimate:
    """Estimated wall time in seconds, and the number of recorded sweeps behind it (0: a guess)."""

    seconds: float
    n_sweeps: int

    def __str__(self) -> str:
        basis = f"from {counted(self.n_sweeps, 'recorded sweep')}" if self.n_sweeps else "no history yet"
        about = f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} min"
        return f"estimated {about} ({basis})"


def estimate(results: Path, kernel: Kernel[Problem], device: Device, n_trials: int, compile_processes: int) -> Estimate:
    """Returns the time of ``n_trials`` more trials: the longer one of the parallel compilers' and the device's."""
    folder, defaults = kernel_path(results, device.name, kernel.name), device_module(device.kind).defaults
    records = sorted(folder.glob(f"*/{SWEEP}"), key=lambda path: -path.stat().st_mtime)[:N_SWEEPS]
    each = [[t for t in SweepFolder(path.parent).trials() if t.compile_s and t.measure_s] for path in records]
    rows = [trial for trials in each for trial in trials]
    if not rows:
        compile_s, device_s = defaults.trial_s
    else:
        compile_s = sum(t.compile_s or 0.0 for t in rows) / len(rows)
        device_s = sum((t.verify_s or 0.0) + (t.measure_s or 0.0) for t in rows) / len(rows)
    each_s = max(compile_s / compile_processes, device_s)
    seconds = defaults.start_s + compile_s + n_trials * each_s
    return Estimate(seconds, sum(map(bool, each)))
