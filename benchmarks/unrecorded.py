"""What a package, a default and a sweep are worth at problems that nobody recorded, on the device at hand.

    python benchmarks/unrecorded.py tuned --seed 7 --problems 6 --out unrecorded.json
    python benchmarks/unrecorded.py tuned --seed 7 --recorded 6 --without "NVIDIA H100 80GB HBM3"

Problems of each kernel are drawn by the seed, of a usual size and none that ``results`` has. At each: the
package's answer, the best of the first four of its ranking, the kernel's default, a quick and a normal sweep that
begin with the records. All that these name are measured side by side; the loss of each is its median over the least.
With --recorded, quick sweeps of recorded problems as well, which know the records of other devices alone: whether one
ends behind the fastest config that another device has for its problem.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from statistics import median
from threading import Lock
from typing import Any

from drawing import KERNELS, usual

from autotune.cli.tables import print_table
from autotune.core.config import Config
from autotune.core.definition import AnyKernel, problem_name
from autotune.core.errors import TrialFailure, UsageError
from autotune.devices import find_device
from autotune.prediction.packaged import Experiences, read_measured
from autotune.records.paths import device_path
from autotune.records.record import SweepRecord, read_sweeps
from autotune.records.trial import Trial
from autotune.source.registry import load_kernel
from autotune.sweep.final_round import side_by_side
from autotune.sweep.progress import Quiet
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings, effort
from autotune.transfer.experience import MODEL, NEIGHBOUR, Experience, ranked
from autotune.trial.bench import Bench

N_FIRST = 4
GRACE_S = 45.0  # for problems that have begun
_asking = Lock()  # a package is asked by one thread at a time
SLOWER = 0.05  # of the default, beyond which a prediction counts as worse
MUCH = 0.15  # a loss that is told by itself
PAIR = {"package", "default"}


@dataclass
class Found:
    """What was measured at one problem; medians in seconds, None where nothing correct was found."""

    kernel: str
    problem: str
    configs: dict[str, str] = field(default_factory=dict)  # what each names
    seconds: dict[str, float] = field(default_factory=dict)
    tier: str = ""  # of the package's answer
    error: str = ""

    def loss(self, name: str) -> float | None:
        return self.seconds[name] / min(self.seconds.values()) - 1 if name in self.seconds else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, help="written by `autotune emit` from --results")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--problems", type=int, default=6, help="of each kernel")
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS))
    parser.add_argument("--trials", type=int, help="of a normal sweep; 0: none is made")
    parser.add_argument("--recorded", type=int, default=0, help="problems of other devices' records")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no problem after so long")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    target, began = find_device(given.device), time.monotonic()
    sys.path.insert(0, str(given.package.resolve().parent))
    given.module = import_module(given.package.name)
    known = Experiences(read_measured(given.package / "measured.json"), given.package)
    sweeps, _ = read_sweeps([given.results])
    wanted = [(load_kernel(name), problem) for name in given.kernels for problem in drawn(name, sweeps, given)]
    random.Random(given.seed).shuffle(wanted)  # so that what a limit leaves out is of all kernels
    with Bench(target, n_sharing=given.threads) as bench, tempfile.TemporaryDirectory() as folder:

        def at(number: int) -> Found | None:
            if time.monotonic() - began > given.seconds:
                return None
            kernel, problem = wanted[number]
            try:
                return compared(kernel, problem, bench, known[kernel.name], Path(folder) / str(number), given)
            except (UsageError, TrialFailure, given.module.UsageError) as error:  # the package has its own class
                return Found(kernel.name, problem_name(problem), error=str(error)[:300])

        behind = quick_of_recorded(sweeps, bench, given, Path(folder) / "recorded") if given.recorded else []
        pool, found = ThreadPoolExecutor(given.threads), list[Found]()
        under_way = [pool.submit(at, number) for number in range(len(wanted))]
        is_over = True
        try:
            for future in as_completed(under_way, timeout=given.seconds + GRACE_S):
                found += [one] if (one := future.result()) is not None else []
        except TimeoutError:
            is_over = False
            print(f"{sum(not future.done() for future in under_way)} problems were not done in time")
        if given.out:
            content = {"device": target.device.name, "seed": given.seed, "problems": [asdict(one) for one in found]}
            given.out.write_text(json.dumps({**content, "recorded": behind}, indent=1) + "\n")
        told(found, behind, target.device.name, given.seed)
        if not is_over:
            sys.stdout.flush()
            os._exit(0)  # what is under way is not waited for
    return 0


def drawn(name: str, sweeps: list[SweepRecord], given: argparse.Namespace) -> list[Any]:
    """Returns problems that no sweep is of, whose launch is neither tiny nor huge."""
    recorded = {sweep.about.problem_name for sweep in sweeps if sweep.kernel == name}
    drawn = usual(load_kernel(name), given.problems, given.seed)
    return [problem for problem in drawn if problem_name(problem) not in recorded]


def records_beside(results: Path, folder: Path, without: str = "") -> Path:
    """Returns a folder of results that begins with all that is recorded, but for the device ``without``."""
    left_out = device_path(results, without)
    for shelf in (path for path in results.glob("*/*") if path.is_dir() and path.parent != left_out):
        (folder / shelf.parent.name / shelf.name).mkdir(parents=True, exist_ok=True)
        for sweep in shelf.iterdir():
            os.symlink(sweep.resolve(), folder / shelf.parent.name / shelf.name / sweep.name)
    return folder


def compared(
    kernel: AnyKernel, problem: Any, bench: Bench, known: Experience, folder: Path, given: argparse.Namespace
) -> Found:
    device, found = bench.target.device, Found(kernel.name, problem_name(problem))
    named: dict[str, Config] = {"default": kernel.default_config(problem, device)}
    named |= {f"ranked {i}": c for i, c in enumerate(ranked(known, kernel, problem, device, N_FIRST), 1)}
    for method in (MODEL, NEIGHBOUR):
        named[method] = ranked(replace(known, method=method), kernel, problem, device, 1)[0]
    with _asking:
        choice = getattr(given.module, kernel.name)(**vars(problem), device=device.name).choice
    found.tier, named["package"] = choice.tier, Config(choice.config)
    best: Trial | None = None
    for name, settings in (
        ("quick", Settings(records_beside(given.results, folder / "quick"), **effort("quick"))),
        ("normal", Settings(records_beside(given.results, folder / "normal"), given.trials, n_finalists=3)),
    ):
        if name == "normal" and given.trials == 0:
            continue
        sweep = run_sweep(kernel, problem, bench, replace(settings, placements=1, checked_launches=0), Quiet())
        if sweep.best is None:
            raise UsageError(f"the {name} sweep found no correct config")
        best = best or sweep.best
        named[name] = sweep.best.config
    assert best is not None
    trials = {config: replace(best, config=config) for config in dict.fromkeys(named.values())}
    rest = list(trials.values())
    while rest:  # what fails is left out, and told
        try:
            medians = {
                one.config: one.median_s
                for one in side_by_side(kernel, problem, bench, rest, Settings(finalist_samples=20, placements=1))
            }
            break
        except TrialFailure as failure:
            found.error = f"{failure.message[:200]}"
            rest = [trial for trial in rest if str(trial.config) not in found.error][: len(rest) - 1]
    found.configs = {name: str(config) for name, config in named.items()}
    found.seconds = {name: medians[config] for name, config in named.items() if config in medians}
    return found


def quick_of_recorded(
    sweeps: list[SweepRecord], bench: Bench, given: argparse.Namespace, folder: Path
) -> list[dict[str, Any]]:
    """Returns for recorded problems of other devices: a quick sweep's best beside each such device's winner."""
    device = bench.target.device
    others = [s for s in sweeps if s.device.name != device.name and s.device.arch == device.arch and s.winner]
    rows: list[dict[str, Any]] = []
    results = records_beside(given.results, folder, without=device.name)
    for sweep in random.Random(given.seed).sample(others, min(given.recorded, len(others))):
        kernel = load_kernel(sweep.kernel)
        problem = kernel.problem(dict(sweep.about.problem))
        assert sweep.winner is not None
        winner = kernel.space.parse(sweep.winner.config)
        own = run_sweep(kernel, problem, bench, Settings(results, **effort("quick")), Quiet())
        if own.best is None:
            continue
        trials = [own.best, *([] if own.best.config == winner else [replace(own.best, config=winner)])]
        medians = {f.config: f.median_s for f in side_by_side(kernel, problem, bench, trials, Settings())}
        rows.append(
            {
                "kernel": kernel.name,
                "problem": problem_name(problem),
                "quick_s": medians[own.best.config],
                "record_s": medians[winner],
            }
        )
    return rows


def told(found: list[Found], behind: list[dict[str, Any]], device: str, seed: int) -> None:
    for one in found:
        for name in ("package", "default", "quick"):
            loss = one.loss(name)
            if loss is not None and loss > MUCH:
                print(f"{one.kernel} {one.problem}: {name} loses {100 * loss:.0f} %, {one.configs[name]}")
        if one.error:
            print(f"{one.kernel} {one.problem}: {one.error}")
    columns = ("package", "best of four", MODEL, NEIGHBOUR, "default", "quick", "normal")
    rows = []
    for kernel in (*dict.fromkeys(one.kernel for one in found), "all"):
        if own := [one for one in found if one.seconds and kernel in (one.kernel, "all")]:
            losses = [told_losses([loss_of(one, name) for one in own]) for name in columns]
            rows.append((kernel, str(len(own)), *losses))
    print(f"\n{device}, seed {seed}: loss against the best of all that was tried, median and worst in percent")
    print_table(("kernel", "problems", *columns), rows)
    pairs = [(one.seconds["package"], one.seconds["default"]) for one in found if one.seconds.keys() >= PAIR]
    n_worse = sum(predicted > (1 + SLOWER) * default for predicted, default in pairs)
    print(f"predicted is more than {100 * SLOWER:.0f} % slower than the default at {n_worse} of {len(pairs)} problems")
    for row in behind:
        times = f"quick {1e6 * row['quick_s']:.1f} us, the record's config {1e6 * row['record_s']:.1f} us"
        print(f"recorded: {row['kernel']} {row['problem'][:60]}: {times}")


def loss_of(one: Found, name: str) -> float | None:
    if name != "best of four":
        return one.loss(name)
    losses = [one.loss(f"ranked {i}") for i in range(1, N_FIRST + 1)]
    return min((loss for loss in losses if loss is not None), default=None)


def told_losses(losses: list[float | None]) -> str:
    told = [100 * loss for loss in losses if loss is not None]
    return f"{median(told):.1f}, {max(told):.0f}" if told else "-"


if __name__ == "__main__":
    raise SystemExit(main())
