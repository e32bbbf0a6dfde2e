"""What the first use of a problem costs and loses, by how many configs are tried, against a normal sweep.

    autotune emit results/NVIDIA_H100_80GB_HBM3 --out tuned
    python benchmarks/first_use.py tuned --seed 7 --json first_use.json

Problems of each kernel are drawn by the seed, of a usual size. At each, kernels of the package are prepared with tune=
0 (predicted), 2, 4 and 8: cold with an empty cache, and warm with what the cold one kept. Then a normal sweep follows,
which knows the records and not what was tried. All configs that these chose are measured side by side; a loss is of the
sweep's best. Use a GPU that nothing else uses.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from drawing import KERNELS, usual
from unrecorded import records_beside

from autotune.cli.tables import print_table
from autotune.core.config import Config
from autotune.core.definition import AnyKernel, problem_name, runtime_fields
from autotune.core.errors import TrialFailure, UsageError
from autotune.devices import find_device
from autotune.source.registry import load_kernel
from autotune.sweep.final_round import side_by_side
from autotune.sweep.progress import Quiet
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench

RESULTS = Path(__file__).parents[1] / "results"
EFFORTS = (0, 2, 4, 8)


@dataclass
class Use:
    """A problem's first use with one effort. ``tier``: how the package chose."""

    config: dict[str, Any]
    tier: str
    cold_s: float
    warm_s: float
    loss: float | None = None


@dataclass
class Row:
    """A problem; ``uses`` by effort."""

    kernel: str
    problem: str
    uses: dict[int, Use] = field(default_factory=dict)
    sweep: dict[str, Any] = field(default_factory=dict)
    error: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, help="a package of all kernels that are drawn")
    parser.add_argument("--results", type=Path, default=RESULTS, help="records that a sweep begins with")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--problems", type=int, default=2, help="of each kernel")
    parser.add_argument("--kernels", nargs="*", default=list(KERNELS))
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no problem after so long")
    parser.add_argument("--json", type=Path, help="a file for all of it")
    given = parser.parse_args()
    began, target = time.monotonic(), find_device(given.device)
    sys.path.insert(0, str(given.package.resolve().parent))
    package = import_module(given.package.name)
    logging.getLogger(given.package.name).setLevel(logging.ERROR)
    drawn = {name: list(usual(load_kernel(name), given.problems, given.seed)) for name in given.kernels}
    # The problems of a time limit are of all kernels.
    asked = [(name, problems[number]) for number in range(given.problems) for name, problems in drawn.items()]
    rows: list[Row] = []
    for name, problem in asked:  # before a bench takes the device
        if time.monotonic() - began > given.seconds / 2:
            break
        row = Row(name, problem_name(problem))
        with told_in(row, (UsageError, package.UsageError)):  # the package has its own class
            row.uses = {tune: first_use(load_kernel(name), problem, package, tune) for tune in EFFORTS}
        rows.append(row)
        cold = {tune: f"{use.tier}, {use.cold_s:.1f} s" for tune, use in row.uses.items()}
        print(f"{time.monotonic() - began:4.0f} s  {name} {cold} {row.error}", flush=True)
    with Bench(target) as bench:
        for row, (name, problem) in zip(rows, asked, strict=False):
            if time.monotonic() - began > given.seconds:
                break
            with told_in(row, (UsageError, TrialFailure)):
                measure(row, load_kernel(name), problem, bench, given.results)
            losses = {tune: f"{100 * use.loss:+.1f} %" for tune, use in row.uses.items() if use.loss is not None}
            print(f"{time.monotonic() - began:4.0f} s  {name} {losses} {row.error}", flush=True)
            if given.json:
                content = {"device": target.device.name, "seed": given.seed, "problems": list(map(asdict, rows))}
                given.json.write_text(json.dumps(content, indent=1) + "\n")
    told(rows, target.device.name, given.seed)


@contextmanager
def told_in(row: Row, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Keeps an error in its row, so that the others go on."""
    try:
        yield
    except errors as error:
        row.error = f"{type(error).__name__}: {error}"[:300]


def first_use(kernel: AnyKernel, problem: Any, package: Any, tune: int) -> Use:
    """Prepares a kernel twice with a cache of its own: the second one finds what the first one kept."""
    sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
    baked = {name: value for name, value in vars(problem).items() if name not in sizes}
    took: list[float] = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["AUTOTUNE_CACHE_DIR"] = cache
        for _ in range(2):
            package._package.__dict__.pop("predicting", None)  # as a new process, which remembers nothing
            begin = time.perf_counter()
            tuned = getattr(package, kernel.name)(**baked, tune=tune)
            tuned.prepare(**sizes)
            took.append(time.perf_counter() - begin)
            choice = tuned.choice_for(**sizes)
            del tuned  # its binary and its arrays
    return Use(dict(choice.config), choice.tier, *took)


def measure(row: Row, kernel: AnyKernel, problem: Any, bench: Bench, results: Path) -> None:
    """Sweeps the problem, and gives each use its loss."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["AUTOTUNE_CACHE_DIR"] = str(Path(folder) / "cache")
        begun_with = records_beside(results, Path(folder) / "results")
        settings = Settings(results=begun_with, trials=60, time=14.0, finalists=3, placements=1, checked_launches=0)
        best = (sweep := run_sweep(kernel, problem, bench, settings, Quiet())).best
        if best is None:
            raise UsageError("the sweep found no correct config")
        configs = dict.fromkeys([best.config, *(Config(use.config) for use in row.uses.values())])
        trials = [replace(best, config=config) for config in configs]
        medians = {one.config: one.median_s for one in side_by_side(kernel, problem, bench, trials, settings)}
    row.sweep = {"config": dict(best.config), "median_s": medians[best.config], "trials": sum(sweep.counts.values())}
    for use in row.uses.values():
        use.loss = medians[Config(use.config)] / medians[best.config] - 1


def told(rows: list[Row], device: str, seed: int) -> None:
    def cell(use: Use | None) -> str:
        if use is None or use.loss is None:
            return "-"
        return f"{100 * use.loss:+.1f} %, {use.cold_s:.1f} s, {1e3 * use.warm_s:.0f} ms"

    print(f"\n{device}, seed {seed}: loss against a sweep, seconds cold, and warm")
    names = ("predicted", *(f"tune={tune}" for tune in EFFORTS[1:]))
    print_table(("kernel", *names), [(row.kernel, *(cell(row.uses.get(tune)) for tune in EFFORTS)) for row in rows])
    for tune, name in zip(EFFORTS, names, strict=True):
        uses = [row.uses[tune] for row in rows if tune in row.uses and row.uses[tune].loss is not None]
        losses = sorted(100 * use.loss for use in uses if use.loss is not None)
        if losses:
            cold, warm = sorted(use.cold_s for use in uses), median(use.warm_s for use in uses)
            print(
                f"{name}: loss median {median(losses):.1f} %, worst {losses[-1]:.1f} %, of {len(losses)}; "
                f"cold {median(cold):.1f} s, at most {cold[-1]:.1f} s; warm {1e3 * warm:.0f} ms"
            )


if __name__ == "__main__":
    main()
