"""What an emitted package loses at sizes that were not tuned: its choice beside the winner of a sweep of that size.

    python benchmarks/other_sizes.py tuned --kernel postproc n_channels=1024,n_heaps=50 n_channels=1024,n_heaps=5

One line a problem: which rule of the lookup answered and the loss that it states, the medians of the package's choice
and of the sweep's winner, measured interleaved, and the loss that was found.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from autotune import Config
from autotune.cli.tables import print_table
from autotune.core.units import seconds_text
from autotune.runtime.lookup import report_choice
from autotune.sweep.final_round import side_by_side
from autotune.sweep.progress import Quiet
from autotune.sweep.request import problems_on, resolve
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path)
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("problems", nargs="+")
    given = parser.parse_args()
    kernel, target = resolve(given.kernel, given.device)
    rows = []
    with Bench(target) as bench, tempfile.TemporaryDirectory() as folder:
        for text, problem in zip(given.problems, problems_on(kernel, given.problems, target), strict=True):
            answer = report_choice(given.package, kernel.name, vars(problem), target.device.name)
            settings = Settings(results=Path(folder), trials=given.trials, hints=0)
            sweep = run_sweep(kernel, problem, bench, settings, Quiet())
            assert sweep.best is not None, "nothing was correct"
            choice = replace(sweep.best, config=Config(answer["config"]))
            both = [sweep.best] if choice.config == sweep.best.config else [sweep.best, choice]
            finalists = side_by_side(kernel, problem, bench, both, replace(settings, finalist_samples=60))
            medians = {found.config: found.median_s for found in finalists}
            loss = medians[choice.config] / min(medians.values()) - 1
            stated = "none" if answer["expected_loss"] is None else f"{100 * answer['expected_loss']:.2f} %"
            worst = answer.get("left_out") or {}
            stated += f", at worst {100 * worst['worst']:.2f} %" if worst else ""
            times = seconds_text(medians[choice.config]), seconds_text(medians[sweep.best.config])
            rows.append((text, answer["tier"], stated, *times, f"{100 * loss:.2f} %"))
    print_table(("problem", "answered by", "loss stated", "its choice", "winner", "loss"), rows)


if __name__ == "__main__":
    main()
