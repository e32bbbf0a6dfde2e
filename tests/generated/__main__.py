"""python -m tests.generated --seed S --n 100: sweeps generated kernels, and says which are judged wrongly."""

import argparse
import sys
import tempfile
from pathlib import Path

from autotune import UsageError
from autotune.devices import find_device
from autotune.records.folder import SweepFolder
from autotune.source.registry import load_kernel
from autotune.sweep.request import problem_on
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench

from .generator import generate

N_TRIALS = 20


def judged(path: Path, results: Path, bench: Bench) -> tuple[bool, str]:
    """Returns whether a sweep of a definition ends with a winner, and the first message of those that are wrong."""
    definition = load_kernel(str(path))
    try:
        problem = problem_on(definition, {}, bench.target)
        sweep = run_sweep(definition, problem, bench, Settings(results=results, trials=N_TRIALS))
    except UsageError as error:
        return False, str(error)
    messages = [trial.message for trial in SweepFolder(sweep.path).trials() if str(trial.status) != "measured"]
    return sweep.best is not None, next(filter(None, messages), "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=lambda text: int(text, 16), required=True, help="hexadecimal digits")
    parser.add_argument("--n", type=int, default=100, help="how many wrong kernels, each with a right twin")
    parser.add_argument("--first", type=int, default=0, help="number of the first that is judged")
    parser.add_argument("--last", type=int, default=10**6, help="number of the last that is judged")
    parser.add_argument("--device", default="host")
    given = parser.parse_args()
    missed, refused = 0, 0
    with tempfile.TemporaryDirectory(prefix="autotune-generated-") as name, Bench(find_device(given.device)) as bench:
        folder = Path(name)
        for drawn in generate(folder, given.seed, given.n):
            if not given.first <= int(drawn.name[-3:]) <= given.last:
                continue
            passes, why = judged(folder / drawn.name / f"{drawn.name}.py", folder / "results", bench)
            if drawn.needs and not drawn.is_right:  # refused with the line that names the macro
                passes = passes or f"define {drawn.needs}: -D {drawn.needs}=1" not in why
            missed += passes and not drawn.is_right
            refused += drawn.is_right and (not passes or bool(why))
            if passes != drawn.is_right or (drawn.is_right and why):
                print(
                    f"{'REFUSED' if drawn.is_right else 'MISSED'} {drawn.name} {drawn.about}: {why[:300]}", flush=True
                )
    print(f"{given.n} wrong kernels, {missed} pass; {given.n} right ones, {refused} refused")
    return int(missed > 2 or refused > 0)


if __name__ == "__main__":
    sys.exit(main())
