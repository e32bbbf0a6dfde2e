"""The best config of each value of a parameter, side by side: which algorithm wins where.

    python benchmarks/alternatives.py --kernel ddc --parameter ALGORITHM taps=64,decimation=16 taps=256,decimation=16

For each problem and value a sweep that keeps to the value, then a final round of the winners, interleaved. One line
each: median and quartiles, efficiency, the largest and the rms error relative to rms(reference), and the config.
"""

import argparse
import tempfile
from pathlib import Path

from autotune.cli.tables import print_table
from autotune.core.errors import UsageError
from autotune.core.units import seconds_text
from autotune.core.work import rates_of
from autotune.sweep.final_round import side_by_side
from autotune.sweep.progress import Quiet
from autotune.sweep.request import problems_on, resolve
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--parameter", required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("problems", nargs="+")
    given = parser.parse_args()
    kernel, target = resolve(given.kernel, given.device)
    rows = []
    with Bench(target) as bench, tempfile.TemporaryDirectory() as folder:
        for number, problem in enumerate(problems_on(kernel, given.problems, target)):
            winners = []
            for value in kernel.space.parameters[given.parameter].values:
                results, only = Path(folder) / f"{number}-{value}", {given.parameter: (value,)}
                settings = Settings(results=results, trials=given.trials, hints=0, finalists=1, only=only)
                try:
                    sweep = run_sweep(kernel, problem, bench, settings, Quiet())
                except UsageError:  # no config has this value
                    continue
                if sweep.best is not None and sweep.best.config.get(given.parameter) == value:
                    winners.append(sweep.best)
            if not winners:
                continue
            for found in side_by_side(kernel, problem, bench, winners, settings):
                share = rates_of(kernel.work(problem), bench.ceilings)["efficiency"](found.median_s)
                rows.append(
                    (
                        given.problems[number],
                        str(found.config[given.parameter]),
                        f"{seconds_text(found.median_s)} ({seconds_text(found.q1_s)} to {seconds_text(found.q3_s)})",
                        "-" if share is None else f"{100 * share:.1f} %",
                        f"{found.max_error:.2g}",
                        f"{found.rms_error:.2g}",
                        str(found.config),
                    )
                )
    print_table(("problem", given.parameter, "median (quartiles)", "efficiency", "largest", "rms", "config"), rows)


if __name__ == "__main__":
    main()
