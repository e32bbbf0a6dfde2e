"""Verifies random configs of channelise at random problems, each against the reference: on a GPU, or on the host.

    python benchmarks/channelise_random.py --problems 40 --configs 13
    python benchmarks/channelise_random.py --problems 4 --configs 3 --device host --most 17 --channels 2048

Problems have ragged numbers of spectra, heaps that they do not fill, samples that begin at any bit, and jumps of the
coarse delay. Configs are drawn from all that the constraints allow, whether a search would try them or not. Prints a
line for each problem and for each failure; the exit status is 1 if there was one.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from autotune import Config, Device, Kernel, ceil_div
from autotune.core.definition import problem_name
from autotune.core.errors import TrialFailure
from autotune.rendering.render import render
from autotune.sweep.request import resolve
from autotune.trial.case import POISONS, CaseInMemory, numpy_case

DRAWS = 200_000  # configs drawn at most, to find those that are allowed


def random_problem(kernel: Kernel[Any], rng: np.random.Generator, most: int, most_channels: int) -> Any:
    """Returns a problem of some 2^most samples at most, or of three spectra."""
    channels = 2 ** int(rng.integers(6, most_channels.bit_length()))
    taps = int(rng.choice([1, 4, 8, 15, 16, 16, 16, 24, 32, 33, 64]))
    bits = int(rng.choice([*range(2, 17), 8, 10, 10, 10, 12, 64]))
    pols = int(rng.choice([1, 2, 2]))
    step = channels if bits == 64 else 2 * channels
    room = max(3, 2**most // (step * pols) - taps)  # spectra
    n_spectra = int(rng.integers(1, min(room, 400) + 1))
    layout = str(rng.choice(["batches", "batches", "blocks"]))
    times = 2 ** int(rng.integers(0, 5))
    heap = (
        times * int(rng.integers(1, 65))
        if layout == "blocks"
        else int(rng.choice([256, 256, int(rng.integers(3, 300))]))
    )
    first = int(rng.integers(0, heap))
    n_heaps = ceil_div(first + n_spectra, heap) + int(rng.integers(0, 2))
    values: dict[str, Any] = dict(taps=taps, n_channels=channels, sample_bits=bits, n_pols=pols, layout=layout)
    values |= dict(times_per_block=times, spectra_per_heap=heap, n_heaps=n_heaps)
    values |= dict(first_spectrum=first, n_spectra=n_spectra)
    values["n_samples"] = (n_spectra + taps - 1) * step + int(rng.integers(0, 3 * step))
    values["bits"] = int(rng.choice([8, 8, 4]))
    values["precision"] = str(rng.choice(["single", "single", "half"]))
    return kernel.problem(values)


def random_configs(kernel: Kernel[Any], problem: Any, device: Device, rng: np.random.Generator, n: int) -> list[Config]:
    """Returns up to n different configs that break no constraint."""
    found: dict[str, Config] = {}
    for _ in range(DRAWS):
        values: dict[str, Any] = {}
        for parameter in kernel.space.parameters.values():
            if all(values.get(name) in allowed for name, allowed in parameter.condition):
                values[parameter.name] = parameter.values[int(rng.integers(len(parameter.values)))]
        config = Config(values)
        if kernel.space.broken(problem, config, device) is None:
            found[str(config)] = config
            if len(found) == n:
                break
    return list(found.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--configs", type=int, default=13, help="of each problem (default: 13)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=21, help="base-2 logarithm of a problem's samples (default: 21)")
    parser.add_argument("--channels", type=int, default=65536, help="most channels of a problem (default: 65536)")
    given = parser.parse_args()
    kernel, target = resolve("channelise", given.device)
    rng = np.random.default_rng(given.seed)
    problems = [random_problem(kernel, rng, given.most, given.channels) for _ in range(given.problems)]
    n_failed = n_verified = 0
    n_workers = os.cpu_count() or 1
    with ProcessPoolExecutor(n_workers, get_context("spawn")) as makers, ThreadPoolExecutor(n_workers) as compilers:
        cases = [makers.submit(numpy_case, kernel, problem) for problem in problems]
        configs = [random_configs(kernel, problem, target.device, rng, given.configs) for problem in problems]
        binaries = [
            [compilers.submit(target.module.compile, render(kernel, problem, config), target.device) for config in some]
            for problem, some in zip(problems, configs, strict=True)
        ]
        session = target.module.open(target.identifier)
        for problem, made, some, compiled in zip(problems, cases, configs, binaries, strict=True):
            case = made.result()
            n_right = 0
            for i, (config, binary) in enumerate(zip(some, compiled, strict=True)):
                try:
                    function = session.load(binary.result(), session.check_builds[0])
                    with CaseInMemory(session, kernel, problem, case.inputs, align=None) as placed:
                        placed.poison(POISONS[i % len(POISONS)])
                        placed.launch(function, kernel.launch(problem, config), seed=i)
                        placed.check(case)
                    n_right += 1
                except TrialFailure as failure:
                    print(f"FAILED {config} at {problem_name(problem)}: {failure.message}", flush=True)
            n_verified, n_failed = n_verified + n_right, n_failed + len(some) - n_right
            print(f"{n_right} of {len(some)} right: {problem_name(problem)}", flush=True)
    print(f"{n_verified} configs right, {n_failed} not, of {given.problems} problems")
    return 1 if n_failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
