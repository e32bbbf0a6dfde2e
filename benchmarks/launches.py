"""Each launch of a kernel that has several: where the time of a config goes.

    python benchmarks/launches.py --kernel channelise --problem n_channels=8192 --config ALGORITHM=two,SPECTRA=16,..
    python benchmarks/launches.py --kernel channelise --problem n_channels=8192 --only COLUMN_POINTS=16 --random 100

One line for each config, the fastest first: all launches together, then what each adds to those before it, by
the name of its function: medians in microseconds, cold cache. Outputs are not checked; ``autotune verify`` does that.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from statistics import median

from autotune.cli.tables import print_table
from autotune.core.definition import Launch
from autotune.core.errors import TrialFailure, UsageError
from autotune.devices.base import Function
from autotune.rendering.render import render
from autotune.sweep.request import parse_config, parse_restriction, problems_on, resolve
from autotune.trial.case import CaseInMemory, random_inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--problem", default="")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--samples", type=int, default=25)
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--random", type=int, default=0, help="so many configs besides, drawn from those allowed")
    parser.add_argument("--only", action="append", default=[], help="restricts them: COLUMN_POINTS=16")
    given = parser.parse_args()
    if not (given.config or given.random):
        parser.error("nothing to time: --config or --random says what")
    kernel, target = resolve(given.kernel, given.device)
    (problem,) = problems_on(kernel, [given.problem] if given.problem else [], target)
    session = target.module.open(target.identifier)
    rows: list[tuple[str, str, str, str]] = []
    configs = []
    if given.random:
        allowed = kernel.space.enumerate(problem, target.device, parse_restriction(kernel, given.only)).configs
        configs = random.Random(0).sample(allowed, min(given.random, len(allowed)))
    for text in given.config:
        try:
            configs.append(parse_config(kernel, text, problem, target))
        except UsageError as error:
            print(error, file=sys.stderr)
    with (
        ThreadPoolExecutor() as compilers,
        CaseInMemory(session, kernel, problem, random_inputs(kernel, problem)) as placed,
    ):
        sources = [render(kernel, problem, config) for config in configs]
        binaries = [compilers.submit(target.module.compile, source, target.device) for source in sources]
        for config, compiled in zip(configs, binaries, strict=True):
            try:
                binary = compiled.result()
                function = session.load(binary, session.timed_build)
                launch = kernel.launch(problem, config)
                figures = [binary.of(step.function) for step in launch.steps]
                registers = " ".join(f"{f.registers}/{f.spill_bytes}" for f in figures)
                rows.append((*times(function, launch, placed, given.samples), registers, str(config)))
            except TrialFailure as failure:
                rows.append(("-", failure.message[:60], "-", str(config)))
    rows.sort(key=lambda row: float(row[0]) if row[0] != "-" else inf)
    print_table(("together", "each", "registers/spilled", "config"), rows)


def times(function: Function, launch: Launch, placed: CaseInMemory, n: int) -> tuple[str, str]:
    """Returns the median of all launches together, and what each adds to those before it, which it may depend on."""
    arguments = placed.arguments(launch)

    def seconds(steps: Sequence[Launch]) -> float:
        first: Launch | None = None
        for step in reversed(steps):
            first = replace(step, then=first)
        assert first is not None
        function.samples(first, arguments, 2, cold=True)
        return median(sample.seconds for sample in function.samples(first, arguments, n, cold=True))

    sums = [0.0, *(seconds(launch.steps[: i + 1]) for i in range(len(launch.steps)))]
    each = (f"{step.function or 'it'} {1e6 * (sums[i + 1] - sums[i]):.1f}" for i, step in enumerate(launch.steps))
    return f"{1e6 * sums[-1]:.1f}", ", ".join(each)


if __name__ == "__main__":
    main()
