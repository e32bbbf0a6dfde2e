"""Searches recorded spaces with simulated time, without a device, and says how well samplers do.

    python benchmarks/searches.py results/NVIDIA_H200/ddc --sampler gp --sampler tpe

P = (found - random) / (optimum - random): 0 is chance, 1 is the best config. Random search always runs as well; its P
must be near 0. docs/search.md tells what the options do.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from recorded_spaces import RecordedSpace, read_spaces, with_failures
from simulated_searches import RANDOM, CompileTimes, Replay
from simulated_searches import replay as replay_space

from autotune.cli.commands.options import DefinitionsOption, in_range
from autotune.cli.console import ProgressLine, ProgressText, note, print_json, stderr, stdout
from autotune.cli.tables import print_table
from autotune.core.errors import UsageError
from autotune.search import check_sampler
from autotune.system.limits import SEED
from autotune.system.processes import n_cpus


def replay(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="SPACE...",
            help="Recorded sweeps or folders of them, Kernel Tuner caches or T4 results (.json, .json.gz).",
        ),
    ],
    sampler: Annotated[
        list[str],
        typer.Option(
            "--sampler",
            help="auto, gp, tpe, random, exhaustive, optuna:NSGAIISampler (any of Optuna's). Repeatable.",
        ),
    ] = ["auto"],
    trials: Annotated[int, typer.Option("--trials", min=1, help="Configurations to try in each search.")] = 100,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, max=100_000, help="Number of searches, each with its own seed.")
    ] = 100,
    ahead: Annotated[
        int, typer.Option("--ahead", min=1, help="Most configs that compile or wait for the device at a time.")
    ] = 1,
    compile_trials: Annotated[
        float | None,
        typer.Option(
            "--compile-trials",
            min=0.0,
            help="Trials that the device could run while one config compiles. [default: that of --ahead]",
            show_default=False,
        ),
    ] = None,
    spread: Annotated[
        float,
        typer.Option("--spread", min=0.0, help="Standard deviation of the logarithms of compile times; 0: all equal."),
    ] = 0.0,
    failing: Annotated[
        float,
        typer.Option(
            "--failing",
            min=0.0,
            help="Share of the configs that fail, the largest ones; the search does not know which.",
        ),
    ] = 0.0,
    seed: Annotated[
        int,
        typer.Option("--seed", callback=in_range(SEED), help="Seed of the first search; each next one adds 1."),
    ] = 0,
    jobs: Annotated[
        int,
        typer.Option("--jobs", min=1, help="Processes that run searches. [default: one per CPU]", show_default=False),
    ] = n_cpus(),
    kernel: DefinitionsOption = [],
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: one object per space and sampler, times in seconds.")
    ] = False,
) -> None:
    """Search recorded spaces with simulated time, without a device.

    P = (found - random) / (optimum - random): 0 is chance, 1 is the best config. Random search always runs as well; its
    P must be near 0.
    """
    samplers = list(dict.fromkeys([*sampler, RANDOM]))
    for name in samplers:
        check_sampler(name)
    spaces, left_out = read_spaces(paths, kernel)
    for path, why in left_out.items():
        note(f"skipped {path}: {why}")
    spaces = [with_failures(space, failing) for space in spaces]
    times = CompileTimes(ahead if compile_trials is None else compile_trials, spread)
    replays = [
        [_replayed(space, name, trials, repeats, ahead, seed, jobs, times) for name in samplers] for space in spaces
    ]
    if json:
        return print_json([one.as_json() for of_space in replays for one in of_space])
    for space, of_space in zip(spaces, replays, strict=True):
        _print_space(space, of_space)


def _replayed(
    space: RecordedSpace,
    sampler: str,
    trials: int,
    repeats: int,
    ahead: int,
    seed: int,
    jobs: int,
    times: CompileTimes,
) -> Replay:
    """Returns the replay of one sampler. Counts the repeats on a terminal; elsewhere prints one line at the end."""
    title = f"{space.name}, {sampler}"
    with ProgressLine(repeats, transient=True) as line:
        counting = partial(_count, line, title)
        answer = replay_space(space, sampler, trials, repeats, ahead, seed, jobs, counting, times)
    if not stderr.is_terminal:
        note(f"{title}: {repeats} repeats")
    return answer


def _count(line: ProgressLine, title: str, n_done: int) -> None:
    line.update(n_done, ProgressText(title))


def _print_space(space: RecordedSpace, replays: list[Replay]) -> None:
    first = replays[0]
    failed = f", {first.n_failed} of which fail" if first.n_failed else ""
    stdout.print(
        f"{space.name}: {first.n_configs} configs{failed}; {first.trials} trials, {first.repeats} repeats, "
        f"{first.ahead} ahead, compiles of {first.compile_trials:g}; optimum {first.optimum_s:.4g} s, "
        f"chance {first.random_s:.4g} s",
        markup=False,
        style="bold",
    )
    columns = ("sampler", "P", "found / optimum", "worst", "trials to 5 %", "device time, s", "busy", "ms per proposal")
    print_table(columns, [_cells(one) for one in replays])


def _cells(one: Replay) -> tuple[str, ...]:
    name = one.sampler if one.sampler == one.searcher else f"{one.sampler} ({one.searcher})"
    return (
        name + (f", {one.n_empty} repeats found nothing" if one.n_empty else ""),
        "-" if one.score is None else f"{one.score:.3f}",
        f"{one.median_ratio:.4f}",
        f"{one.worst_ratio:.4f}",
        "-" if one.trials_to_near is None else f"{one.trials_to_near:g}",
        f"{one.simulated_s:.0f}",
        f"{one.busy:.0%}",
        f"{one.ask_ms:.2f}",
    )


if __name__ == "__main__":
    try:
        typer.run(replay)
    except UsageError as error:
        stderr.print(f"searches: {error}", markup=False)
        sys.exit(2)
