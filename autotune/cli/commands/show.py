"""`autotune show` prints recorded sweeps for people, and with --json for programs."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...analysis.fields import assignments, common_fields, own_fields, told_common
from ...analysis.importance import Importance, importances, marked_name, winners_first
from ...analysis.same_code import same_code_text
from ...analysis.show import (
    Spent,
    details,
    failures,
    front_of,
    holds,
    newer_values,
    objective_text,
    overview,
    place,
    spent,
    winner_text,
)
from ...core.config import Value
from ...core.errors import UsageError
from ...core.parameter import clause
from ...core.schema import plain
from ...core.units import broken_at_commas, counted, percent, seconds_text, speed_up_cell
from ...records.folder import all_sweeps
from ...records.objectives import values_of
from ...records.outcome import Finalist
from ...records.record import SweepRecord
from ...report.facts import finalist_table, winner_facts
from ...validity.untried import value_names
from ..console import print_json, stdout
from ..tables import bar, print_table, wrapped
from .show_across import print_across
from .show_first_use import print_first_uses

MOST_REFUSALS = 3  # how many constraints are shown
OTHERS = "slowdown of the best config with each other value"


def show(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Recorded sweeps, or folders of them. [required without --first-use]")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            "-v",
            help="Show details of every sweep. [default: details of a single sweep, one line each for several]",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: a list with one object per sweep, times in seconds.")
    ] = False,
    parameters: Annotated[
        bool,
        typer.Option(
            "--parameters",
            help="Over several sweeps: how much each parameter matters, which values win, and the cost of fixing one.",
        ),
    ] = False,
    kernel: Annotated[str, typer.Option("--kernel", help="Only sweeps of this kernel. [default: all]")] = "",
    first_use: Annotated[
        bool,
        typer.Option(
            "--first-use", help="Instead of sweeps: what was tuned on this machine at first use, in the user's cache."
        ),
    ] = False,
) -> None:
    """Show the winner and its evidence, the final round, failures, the search, and which parameters matter."""
    if first_use:
        return print_first_uses(kernel, everything, json)
    if not paths:
        raise UsageError("name a recorded sweep, or a folder of them, such as results; or give --first-use")
    found = [SweepRecord.of(folder) for folder in all_sweeps(paths)]
    sweeps = [sweep for sweep in found if kernel in ("", sweep.kernel)]
    if not sweeps:
        there = ", ".join(sorted({sweep.kernel for sweep in found}))
        raise UsageError(f"no sweep of --kernel {kernel} is recorded here; the recorded kernels are {there}")
    if parameters:
        return print_across(sweeps, json)
    in_full = everything or len(sweeps) == 1
    if json:
        return print_json([details(sweep) if in_full else asdict(overview(sweep)) for sweep in sweeps])
    if len(sweeps) > 1:
        _print_overview(sweeps)
    if in_full:
        for sweep in sweeps:
            _print_details(sweep)
    else:
        stdout.print("\nfor details, name one of the folders or give --all")


def _print_overview(sweeps: list[SweepRecord]) -> None:
    """Prints one line per sweep, with columns for the device, the kernel and fields of the problem that differ."""
    lines = sorted(map(overview, sweeps), key=place)
    devices, kernels = {line.device for line in lines}, {line.kernel for line in lines}
    stdout.print(
        f"{counted(len(lines), 'sweep')} of {', '.join(sorted(kernels))} on {', '.join(sorted(devices))}",
        markup=False,
        style="bold",
    )
    common = common_fields([line.kernel for line in lines], [line.problem for line in lines])
    for text in told_common(common):
        stdout.print(text, markup=False)
    columns = {
        "device": [line.device for line in lines] if len(devices) > 1 else None,
        "kernel": [line.kernel for line in lines] if len(kernels) > 1 else None,
        "problem": [assignments(own_fields(line.problem, common[line.kernel])) for line in lines],
        "trials": [line.n_trials for line in lines],
        "failed": [line.n_failed for line in lines],
        "best": [seconds_text(line.best_s) for line in lines],
        "default": [seconds_text(line.default_s) for line in lines],
        "speed-up": [speed_up_cell(line.speed_up, line.speed_up_interval) for line in lines],
        "of roofline": [percent(line.efficiency) for line in lines] if any(line.efficiency for line in lines) else None,
        "winner": [winner_text(line) for line in lines],
    }
    shown = {name: cells for name, cells in columns.items() if cells is not None}
    print_table(tuple(shown), list(zip(*shown.values(), strict=True)), cut="winner")


def _print_details(sweep: SweepRecord) -> None:
    about = sweep.about
    stdout.print(f"\n{sweep.title}", markup=False, style="bold")
    origin = ("machine", "compiler", "commit", "started")
    known = [("commit " if name == "commit" else "") + text for name in origin if (text := getattr(about, name))]
    _line("record", f"{plain(str(sweep.folder.path))}; {', '.join(known)}")
    if sweep.outcome is None:
        _line("unfinished", "no final round yet: times are from the search; run the sweep again to finish it")
    if text := holds(sweep):
        _line("today", text)
    if values := value_names(newer_values(sweep)):
        _line("newer", f"not tried, since they are newer: {', '.join(values)}. Sweep it again")
    for fact in winner_facts(sweep):
        for line in fact.lines:
            _line(fact.name, line, is_config=fact.name in ("winner", "default"))
    if (table := finalist_table(sweep)) is not None:
        stdout.print()
        print_table(table.columns, table.rows, below="config")
        if table.reading:
            _text(table.reading)
    _print_front(sweep)
    _print_trials(sweep)
    _print_spent(spent(sweep))
    if sweep.measured:
        medians = [trial.median_s for trial in sweep.trials]
        first, least = next(filter(None, medians)), sweep.measured[0].median_s
        text = f"{seconds_text(first)} to {seconds_text(least)} over {len(medians)} trials"
        _line("best so far", f"{text}, found by trial {1 + medians.index(least)}")
    _print_importance(importances(sweep.trials), sweep.winner.config if sweep.winner else {})


def _print_front(sweep: SweepRecord) -> None:
    """Prints the Pareto front, if the sweep has two objectives: no config beats one of these in both."""
    objectives = sweep.objectives
    if len(objectives) < 2:
        return
    rows = []
    for each in front_of(sweep, objectives):
        values = values_of(objectives, each) or {}
        source = "final round" if isinstance(each, Finalist) else "search"
        rows.append(
            (*(objective_text(name, value) for name, value in values.items()), source, assignments(each.config))
        )
    stdout.print()
    print_table((*(f"front: {o}" for o in objectives), "from", "config"), rows, below="config")


def _print_trials(sweep: SweepRecord) -> None:
    n_configs = sweep.outcome.n_configs if sweep.outcome else None
    counts = ", ".join(f"{n} {status}" for status, n in sweep.counts.items()) or "none"
    stdout.print()
    _line("trials", counts + (f"; the space has {n_configs} configs" if n_configs else ""))
    if n_stale := len(sweep.about.stale):
        are = "trial does" if n_stale == 1 else "trials do"
        _line("", f"{n_stale} earlier {are} not count: code, measurement or the allowed configs have changed")
    if same := same_code_text(sweep.trials):
        _line("", same)
    for failure in failures(sweep):
        message = (failure.message.splitlines() or ["no message"])[0]
        launched = f" ({failure.launch})" if failure.launch else ""
        _line("", f"{failure.status} ({failure.n}), first trial {failure.number}{launched}: {message}")
        if failure.reproduce:
            _line("", f"    {failure.reproduce}")
        if failure.values:
            _line("", f"    every config with {'; '.join(f'{each} ({each.n})' for each in failure.values)} fails so")
    refused = sorted(sweep.about.refused.items(), key=lambda item: -item[1])
    for why, n in refused[:MOST_REFUSALS]:
        _line("", f"{counted(n, 'config')} {clause(why, n)}")
    if rest := refused[MOST_REFUSALS:]:
        _line("", f"{len(rest)} more constraints refuse {sum(n for _, n in rest)} configs (--json names them)")


def _print_spent(where: Spent) -> None:
    others = [f"{name.replace('_', ' ')} {_figure(name, value)}" for name, value in where.others.items()]
    if where.shares:
        ordered = sorted(where.shares.items(), key=lambda item: -item[1])
        parts = ", ".join(f"{percent(share)} {what}" for what, share in ordered if share >= 0.0005)
        _line("time", "; ".join([f"{seconds_text(where.total_s)}: {parts}", *others]))
    elif others:
        _line("time", "; ".join(others))


def _print_importance(found: tuple[Importance, ...], winner: Mapping[str, Value]) -> None:
    """Prints a bar for each parameter, and the slowdown of the best config with each other value.

    Parameters that the winner does not use come last, marked with *.
    """
    if not found:
        return
    n_measured = max(each.n_trials for each in found)
    rows = []
    for each in winners_first(found, winner):
        best, *others = each.values
        costs = ", ".join(f"{effect.value} +{100 * effect.loss:.1f} %" for effect in others)
        among = "all" if each.n_trials == n_measured else str(each.n_trials)
        share = "-" if each.share is None else f"{100 * each.share:.0f} %"
        rows.append((marked_name(each.name, winner), bar(each.share or 0.0), share.rjust(5), best.value, among, costs))
    stdout.print()
    columns = ("parameter", "share of variance", "", "best", "configs", OTHERS)
    print_table(columns, rows, below=OTHERS)
    _text(
        "share of variance: the part of the variance of log(time) that the parameter's value explains, over all "
        "measured configs with this parameter"
    )
    if any(row[0].endswith("*") for row in rows):
        _text("*: the winner does not use this parameter")


def _figure(name: str, value: float) -> str:
    if name.endswith(("share", "idle")) and 0 <= value <= 1:
        return percent(value)
    return seconds_text(value) if name.endswith("_s") else f"{value:.4g}"


def _line(name: str, text: str, is_config: bool = False) -> None:
    """Prints a line. On a narrow terminal it continues below; a config (``is_config``) breaks after a comma."""
    width = stdout.width - 13 if stdout.is_terminal else len(text)
    for part in broken_at_commas(text, width) if is_config else wrapped(text, width):
        stdout.print(f"{name:<12} {part}", markup=False, soft_wrap=True)
        name = ""


def _text(text: str) -> None:
    for part in wrapped(text, stdout.width if stdout.is_terminal else len(text)):
        stdout.print(part, markup=False, soft_wrap=True)
