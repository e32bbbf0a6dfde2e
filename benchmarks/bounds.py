"""Computes the table of autotune/runtime/bounds.py from recorded sweeps.

    python benchmarks/bounds.py results

It prints, for a number of trials, what the fastest of the first so many lost against the fastest of the whole sweep:
the median, and the loss that nine sweeps of ten do not exceed. Only sweeps count that tried all configs, or at least
DEEP and twice as many.
"""

import sys
from collections.abc import Iterable
from math import ceil
from pathlib import Path
from statistics import median

from autotune.records.record import SweepRecord, read_sweeps
from autotune.runtime.bounds import DEEP, LOSS_AFTER

LEAST = 20  # sweeps that a row needs


def losses_after(n: int, sweeps: Iterable[SweepRecord]) -> list[float]:
    """Returns the loss of the fastest of the first ``n`` configs in each sweep that tells it."""
    losses = []
    for sweep in sweeps:
        times = [trial.median_s for trial in sweep.trials if trial.median_s]
        n_configs = sweep.outcome.n_configs if sweep.outcome else None
        is_complete = n_configs is not None and len(sweep.trials) >= n_configs
        if len(times) > n and (is_complete or len(times) >= max(DEEP, 2 * n)):
            losses.append(min(times[:n]) / min(times) - 1)
    return losses


def table(sweeps: list[SweepRecord], numbers: Iterable[int]) -> dict[int, tuple[float, float]]:
    """Returns the median and the bound for each number of trials that enough sweeps tell."""
    rows, least = dict[int, tuple[float, float]](), (0.0, 0.0)
    for n in sorted(numbers, reverse=True):
        losses = sorted(losses_after(n, sweeps))
        if len(losses) >= LEAST:
            within = ceil(0.9 * (len(losses) + 1))  # so that it also holds for one more sweep
            found = round(median(losses), 4), round(losses[within - 1], 4)
            rows[n] = least = max(least[0], found[0]), max(least[1], found[1])  # fewer configs lose no less
    return dict(sorted(rows.items()))


def main() -> None:
    sweeps, _ = read_sweeps(map(Path, sys.argv[1:] or ["results"]))
    for n, (expected, bound) in table(sweeps, [*LOSS_AFTER, 60, 80, 120]).items():
        print(f"    {n}: ({expected}, {bound}),  # {len(losses_after(n, sweeps))} sweeps")


if __name__ == "__main__":
    main()
