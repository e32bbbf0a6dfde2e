"""Does a sweep name the same winner twice? Independent sweeps of one problem, and their winners measured side by side.

    python benchmarks/repeatability.py --kernel ddc --problem taps=128,decimation=8 --sweeps 3 --trials 100

Each sweep has a seed and a folder of its own and knows nothing of the others. One line a winner: its config, its median
in its own sweep, its median among the winners, and how it stands to the fastest of them.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from autotune.cli.console import ConsoleProgress
from autotune.cli.tables import print_table
from autotune.core.units import seconds_text
from autotune.sweep.final_round import side_by_side
from autotune.sweep.request import problems_on, resolve
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="ddc")
    parser.add_argument("--problem", default="")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--trials", type=int, default=None)
    parser.add_argument("--sampler", default="auto")
    given = parser.parse_args()
    kernel, target = resolve(given.kernel, given.device)
    (problem,) = problems_on(kernel, [given.problem] if given.problem else [], target)
    with Bench(target) as bench, tempfile.TemporaryDirectory() as folder:
        winners = []
        for seed in range(given.sweeps):
            settings = Settings(
                results=Path(folder) / str(seed), trials=given.trials, sampler=given.sampler, seed=seed, hints=0
            )
            sweep = run_sweep(kernel, problem, bench, settings, ConsoleProgress())
            assert sweep.best is not None, "nothing was correct"
            winners.append(replace(sweep.best, number=seed))
        distinct = list({trial.config: trial for trial in winners}.values())
        finalists = side_by_side(kernel, problem, bench, distinct, replace(settings, finalist_samples=200))
        together = {f.config: f for f in finalists}
    rows = []
    for trial in winners:
        found = together[trial.config]
        alone, beside = seconds_text(trial.median_s), seconds_text(found.median_s)
        rows.append((trial.number, alone, beside, found.relation, str(trial.config)))
    print_table(("sweep", "median in its sweep", "among the winners", "", "config"), rows)


if __name__ == "__main__":
    main()
