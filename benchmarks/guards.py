"""What it costs to find more: guarded buffers, and launches on outputs that hold something, for a sweep's trials.

    python benchmarks/guards.py --kernel ddc --problem taps=128,decimation=8 --trials 100

Needs a GPU. Compiles that many configs, verifies each of them in four ways (seconds of all, the shortest of several
rounds), and then times one config in guarded and in plain buffers, in turns.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from autotune.core.config import Config
from autotune.core.definition import Kernel
from autotune.core.errors import TrialFailure
from autotune.devices.base import Binary
from autotune.rendering.render import render
from autotune.sweep.request import problems_on, resolve
from autotune.system.processes import n_cpus
from autotune.trial.case import CaseInMemory, numpy_case
from autotune.trial.compile import CompilePool
from autotune.trial.verify import verify
from autotune.trial.verify_configs import sample_of

WAYS = {  # name -> (guarded buffers, launches on outputs that hold something)
    "neither": (False, False),
    "guarded buffers": (True, False),
    "additional launches": (False, True),
    "both, as sweeps do": (True, True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="ddc")
    parser.add_argument("--problem", default="")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    kernel, target = resolve(given.kernel, given.device)
    (problem,) = problems_on(kernel, [given.problem] if given.problem else [], target)
    configs = sample_of(kernel.space.enumerate(problem, target.device).configs, given.trials)
    binaries = compiled(kernel, problem, configs, target)
    session: Any = target.module.open(target.identifier)
    guarded = session.guarded
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(given.rounds + 1):  # the first one makes references
        for way, (is_guarded, launches) in WAYS.items():
            session.guarded = guarded if is_guarded else None
            with additional_launches(launches):
                took[way].append(seconds(lambda: [verify(session, kernel, problem, c, b) for c, b in binaries]))
    for way, all_s in took.items():
        print(f"{way:20s} {min(all_s[1:]):.3f} s to verify {len(binaries)} configs")
    for way, samples in timed(session, guarded, kernel, problem, *binaries[0], given.rounds).items():
        print(f"{way:20s} {1e6 * median(samples):.3f} us, median of {len(samples)} launches of {binaries[0][0]}")


def compiled(kernel: Kernel[Any], problem: Any, configs: list[Config], target: Any) -> list[tuple[Config, Binary]]:
    """Those that compile."""
    with CompilePool(target, max(1, n_cpus() - 1)) as pool:
        pending = [(config, pool.submit(render(kernel, problem, config))) for config in configs]
        found = []
        for config, binary in pending:
            try:
                found.append((config, binary.result()))
            except TrialFailure as failure:
                print(f"{config}: {failure}")
    return found


@contextmanager
def additional_launches(on: bool) -> Iterator[None]:
    before = CaseInMemory.check_overwrites
    if not on:
        CaseInMemory.check_overwrites = lambda *_: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        CaseInMemory.check_overwrites = before  # type: ignore[method-assign]


def timed(
    session: Any, guarded: Any, kernel: Kernel[Any], problem: Any, config: Config, binary: Binary, rounds: int
) -> dict[str, list[float]]:
    """Seconds of cold launches, in buffers of each kind."""
    case = numpy_case(kernel, problem)
    function, geometry = session.load(binary, session.timed_build), kernel.launch(problem, config)
    samples: dict[str, list[float]] = {"plain buffers": [], "guarded buffers": []}
    for _ in range(rounds):
        for way, found in samples.items():
            session.guarded = guarded if way.startswith("guarded") else None
            with CaseInMemory(session, kernel, problem, case.inputs) as placed:
                function.samples(geometry, placed.arguments, 3, cold=True)
                found += [s.seconds for s in function.samples(geometry, placed.arguments, 40, cold=True)]
                session.guarded = guarded
    return samples


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
