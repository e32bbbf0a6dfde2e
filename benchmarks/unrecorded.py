"""What a package states and loses at problems that nobody recorded, beside a sweep on the device at hand.

    python benchmarks/unrecorded.py tuned --seed 7 --problems 48 --trials 80 --out unrecorded.json --keep records
    python benchmarks/unrecorded.py tuned --seed 7 --each 10 --kernels correlate ddc --trials 60
    python benchmarks/unrecorded.py tuned --seed 7 --recorded 20 --trials 150

Problems are drawn by the seed from ``benchmarks/drawn``, in turn over a kernel's whole ranges and as telescopes have
them: --problems in all, two at a time of a kernel that the seed draws too, or --each of every kernel. At each problem:
the package's answer with its stated loss and bound, its first four candidates, the first of the trees with the kernel's
rule and without it, the rule itself, the answer of another package (--before), and a sweep that begins with the
records. All that these name is measured side by side; the loss of each is its median over the least. The sweeps are
records like others: --keep adds them to a folder of results. With --recorded so many problems are drawn of those that
were recorded on the device, and each is swept anew, without its own record.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from statistics import fmean, median
from threading import Lock
from typing import Any

import numpy as np
from drawing import KERNELS

from autotune.campaign.campaign_plan import read_plan
from autotune.cli.tables import print_table
from autotune.core.config import Config
from autotune.core.definition import AnyKernel, problem_name
from autotune.core.errors import TrialFailure, UsageError
from autotune.devices import find_device
from autotune.recommend.candidates import candidates, scores
from autotune.recommend.experience import Experience
from autotune.recommend.packaged import Experiences
from autotune.records.paths import sweep_path
from autotune.records.record import SweepRecord, read_sweeps
from autotune.source.registry import load_kernel
from autotune.sweep.final_round import side_by_side
from autotune.sweep.progress import Quiet
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench

DRAWN = Path(__file__).parent / "drawn"
N_FIRST = 4
GRACE_S = 45.0  # for problems that have begun
MUCH = 0.15  # a loss that is told by itself
COLUMNS = ("package", "before", "best of four", "learnt", "without the rule", "rule", "sweep")
_asking = Lock()  # a package is asked by one thread at a time


@dataclass
class Found:
    """What was measured at one problem; medians in seconds, None where nothing correct was found."""

    kernel: str
    problem: str
    configs: dict[str, str] = field(default_factory=dict)  # what each names
    seconds: dict[str, float] = field(default_factory=dict)
    tier: str = ""  # of the package's answer
    stated: float | None = None
    bound: float | None = None
    n_trials: int = 0
    error: str = ""

    def loss(self, name: str) -> float | None:
        names = [f"candidate {i}" for i in range(N_FIRST)] if name == "best of four" else [name]
        own = [self.seconds[each] for each in names if each in self.seconds]
        return min(own) / min(self.seconds.values()) - 1 if own else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, help="written by `autotune emit` from --results")
    parser.add_argument("--before", type=Path, help="another package")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=lambda text: int(text, 0), required=True)
    parser.add_argument("--problems", type=int, default=48, help="over all kernels")
    parser.add_argument("--each", type=int, help="instead: of each kernel")
    parser.add_argument("--recorded", type=int, default=0, help="instead: of all that are recorded on the device")
    parser.add_argument("--kernels", nargs="+", default=list(KERNELS))
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no problem after so long")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder of results to which the sweeps are added")
    given = parser.parse_args()
    target, began = find_device(given.device), time.monotonic()
    modules = [imported(path) for path in (given.package, given.before) if path]
    known = Experiences(given.package / "measured.json")
    sweeps, _ = read_sweeps([given.results])
    rng, recorded = random.Random(given.seed), {(sweep.kernel, sweep.about.problem_name) for sweep in sweeps}
    if given.recorded:
        own = [one for one in sweeps if one.device.name == target.device.name and one.kernel in given.kernels]
        wanted = [problem_of_sweep(one) for one in rng.sample(own, given.recorded)]
    else:
        pairs = Counter(rng.choices(given.kernels, k=given.problems // 2))
        numbers = dict.fromkeys(given.kernels, given.each) if given.each else {name: 2 * n for name, n in pairs.items()}
        wanted = [(load_kernel(name), problem) for name, n in numbers.items() for problem in drawn(name, n, given.seed)]
        wanted = [(kernel, one) for kernel, one in wanted if (kernel.name, problem_name(one)) not in recorded]
        rng.shuffle(wanted)  # so that what a limit leaves out is of all kernels
    told_errors = (
        UsageError,
        TrialFailure,
        *(module.UsageError for module in modules),
    )  # own classes
    with Bench(target, n_sharing=given.threads) as bench, tempfile.TemporaryDirectory() as folder:

        def at(number: int) -> Found | None:
            if time.monotonic() - began > given.seconds:
                return None
            kernel, problem = wanted[number]
            try:
                own = sweep_path(given.results, target.device.name, kernel.name, problem_name(problem))
                beside = records_beside(given.results, Path(folder) / str(number), own)
                return compared(kernel, problem, bench, known[kernel.name], beside, modules, given.trials)
            except told_errors as error:
                return Found(kernel.name, problem_name(problem), error=str(error)[:300])
            finally:
                if given.keep:
                    kept(Path(folder) / str(number), given.keep)

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
            given.out.write_text(json.dumps(content, indent=1) + "\n")
        told(found, target.device.name, given.seed)
        if not is_over:
            sys.stdout.flush()
            os._exit(0)  # what is under way is not waited for
    return 0


def imported(package: Path) -> Any:
    sys.path.insert(0, str(package.resolve().parent))
    return import_module(package.name)


def drawn(name: str, n: int, seed: int) -> list[Any]:
    kernel = load_kernel(name)
    draw = read_plan(DRAWN / f"{name}.toml", draw=n, seed=seed).draw
    return list(draw.problems(kernel))


def problem_of_sweep(sweep: SweepRecord) -> tuple[AnyKernel, Any]:
    kernel = load_kernel(sweep.kernel)
    return kernel, kernel.problem(dict(sweep.about.problem))


def records_beside(results: Path, folder: Path, without: Path | None = None) -> Path:
    """Returns a folder of results that begins with all that is recorded, but for the sweep ``without``."""
    for shelf in (path for path in results.glob("*/*") if path.is_dir()):
        (folder / shelf.parent.name / shelf.name).mkdir(parents=True, exist_ok=True)
        for sweep in (path for path in shelf.iterdir() if path != without):
            os.symlink(sweep.resolve(), folder / shelf.parent.name / shelf.name / sweep.name)
    return folder


def kept(folder: Path, results: Path) -> None:
    """Adds the sweeps of a folder that are not links to other results, and the files that sweeps share, if they are not
    there.
    """
    for path in folder.glob("*/*/*"):
        copy = results / path.relative_to(folder)
        if not copy.exists() and (path.is_file() or not path.is_symlink()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)


def compared(
    kernel: AnyKernel, problem: Any, bench: Bench, known: Experience, results: Path, modules: list[Any], n_trials: int
) -> Found:
    device, found = bench.target.device, Found(kernel.name, problem_name(problem))
    allowed = kernel.space.enumerate(problem, device).configs
    ranked = scores(known, kernel, problem, device, allowed)
    named: dict[str, Config] = {"rule": kernel.default_config(problem, device)}
    named |= dict(zip(("learnt", "without the rule"), (allowed[int(np.argmin(each))] for each in ranked), strict=True))
    first = candidates(known, kernel, problem, device, N_FIRST, allowed, ranked)
    named |= {f"candidate {i}": one.config for i, one in enumerate(first)}
    for name, module in zip(("package", "before"), modules, strict=False):
        with _asking:
            choice = getattr(module, kernel.name)(**vars(problem), device=device.name).choice
        named[name] = Config(choice.config)
        if name == "package":
            found.tier, found.stated, found.bound = choice.tier, choice.expected_loss, choice.bound
    settings = Settings(results=results, trials=n_trials, finalists=3, placements=1, checked_launches=0)
    sweep = run_sweep(kernel, problem, bench, settings, Quiet())
    if sweep.best is None:
        raise UsageError("the sweep found no correct config")
    named["sweep"], found.n_trials = sweep.best.config, sum(sweep.counts.values())
    rest = [replace(sweep.best, config=config) for config in dict.fromkeys(named.values())]
    medians: dict[Config, float] = {}
    while rest and not medians:  # what fails is left out, and told
        try:
            timed = side_by_side(kernel, problem, bench, rest, Settings(finalist_samples=20, placements=1))
            medians = {one.config: one.median_s for one in timed}
        except TrialFailure as failure:
            found.error = f"{failure.message[:200]}"
            rest = [trial for trial in rest if str(trial.config) not in found.error][: len(rest) - 1]
    found.configs = {name: str(config) for name, config in named.items()}
    found.seconds = {name: medians[config] for name, config in named.items() if config in medians}
    return found


def told(found: list[Found], device: str, seed: int) -> None:
    for one in found:
        loss = one.loss("package")
        if loss is not None and loss > MUCH:
            bound = "no bound" if one.bound is None else f"bound {100 * one.bound:.0f} %"
            print(f"{one.kernel} {one.problem}: {one.tier} loses {100 * loss:.0f} %, {bound}: {one.configs['package']}")
        if one.error:
            print(f"{one.kernel} {one.problem}: {one.error}")
    rows = []
    for kernel in (*dict.fromkeys(one.kernel for one in found), "all"):
        if own := [one for one in found if one.seconds and kernel in (one.kernel, "all")]:
            known = [(loss, one.bound) for one in own if (loss := one.loss("package")) is not None and one.bound]
            held = f"{sum(loss <= bound for loss, bound in known)} of {len(known)}"
            stated = [one.stated for one in own if one.stated is not None]
            figures = [held, *(f"{100 * median(x):.1f}" if x else "-" for x in (stated, [b for _, b in known]))]
            rows.append(
                (kernel, str(len(own)), *figures, *(told_losses([one.loss(name) for one in own]) for name in COLUMNS))
            )
    print(f"\n{device}, seed {seed:#x}: losses against the best of all that was tried: median, mean, 90 %, worst; in %")
    print_table(("kernel", "problems", "bounds hold", "stated", "bound", *COLUMNS), rows)


def told_losses(losses: list[float | None]) -> str:
    own = [100 * loss for loss in losses if loss is not None]
    return f"{median(own):.1f} {fmean(own):.1f} {np.percentile(own, 90):.0f} {max(own):.0f}" if own else "-"


if __name__ == "__main__":
    raise SystemExit(main())
