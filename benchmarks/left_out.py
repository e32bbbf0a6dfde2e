"""What each way of answering loses on the records: a problem is left out everywhere, or a whole card is.

    python benchmarks/left_out.py [--kernels ddc correlate] [--package tuned]

For each kernel: the loss of what is chosen for a recorded problem, whose sweep tells it where it measured the choice.
"problem": the problem is left out on all cards. "card": all records of its card, and the problem on others. Losses are
median and worst in percent, and how many were told. With --package, what the package's wisdom.json states of its tiers.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from autotune.analysis.predictions import experience_with
from autotune.cli.tables import print_table
from autotune.core.config import Config
from autotune.core.definition import AnyKernel
from autotune.records.as_recorded import problem_of
from autotune.records.record import SweepRecord, read_sweeps
from autotune.source.registry import load_kernel
from autotune.transfer.experience import METHODS, MODEL, Experience, MeasuredProblem, ranked

N_FIRST = 4
RESULTS = Path(__file__).parents[1] / "results"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--kernels", nargs="*")
    parser.add_argument("--package", type=Path)
    given = parser.parse_args()
    sweeps, _ = read_sweeps([given.results])
    rows = []
    for name in given.kernels or sorted({sweep.kernel for sweep in sweeps}):
        kernel = load_kernel(name)
        own = [sweep.of_space(kernel.space) for sweep in sweeps if sweep.kernel == name and sweep.median_s]
        experience = experience_with(kernel, own)
        assert experience is not None
        for left_out in ("problem", "card"):
            found = list(losses(kernel, own, experience, left_out))
            rows.append((name, left_out, str(len(found)), *(told([one[i] for one in found]) for i in range(4))))
    print_table(("kernel", "left out", "sweeps", *METHODS, "best of four"), rows)
    if given.package:
        stated = json.loads((given.package / "wisdom.json").read_text())["losses"]
        wanted = [one for one in stated if one["where"] == "sm_90"]
        print_table(
            ("kernel", "tier", "stated: median, worst", "told", "untold"),
            [
                (w["kernel"], w["tier"], percent(w["median"], w["worst"]), str(w["n"]), str(w["n_untold"]))
                for w in wanted
            ],
        )
    return 0


def losses(
    kernel: AnyKernel, sweeps: list[SweepRecord], experience: Experience, left_out: str
) -> Iterator[tuple[float | None, ...]]:
    """Yields the losses of each method's first config, and of the best of the model's first few."""
    for sweep in sweeps:
        fields, card = dict(sweep.about.problem), sweep.device.name
        rest = experience.without(partial(is_left_out, fields, card if left_out == "card" else ""))
        if not rest.knows(sweep.device):
            continue
        problem = problem_of(kernel, sweep.about)
        first: list[tuple[Config, ...]] = [
            ranked(replace(rest, method=method), kernel, problem, sweep.device, N_FIRST if method == MODEL else 1)
            for method in METHODS
        ]
        of_four = [loss for config in first[METHODS.index(MODEL)] if (loss := sweep.loss(config)) is not None]
        yield (*(sweep.loss(configs[0]) for configs in first), min(of_four, default=None))


def is_left_out(fields: Mapping[str, object], card: str, one: MeasuredProblem) -> bool:
    return dict(one.problem) == fields or one.device.name == card


def told(found: list[float | None]) -> str:
    known = [loss for loss in found if loss is not None]
    return f"{percent(median(known), max(known))} ({len(known)})" if known else "-"


def percent(middle: float, worst: float) -> str:
    return f"{100 * middle:.1f}, {100 * worst:.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
