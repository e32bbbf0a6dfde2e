"""Formats the results of `autotune sweep` and `autotune list` as tables and JSON."""

import inspect
from collections.abc import Collection
from dataclasses import fields
from typing import Any

from ..analysis.same_code import same_code_text
from ..analysis.show import checks_text, figures_text, launch_text
from ..core.definition import Device, Kernel
from ..core.errors import Status
from ..core.problem import Problem
from ..core.units import counted, percent, seconds_text, speed_up_text
from ..records.figure import figures_of
from ..records.folder import SweepFolder
from ..records.outcome import SAME, Relation
from ..records.trial import Trial
from ..sweep.final_round import PREFERENCE
from ..sweep.run import Sweep
from ..system.shell import command, definition_words
from .console import cut_middle, stdout
from .tables import print_table

# figures that `sweep --json` prints for the best config and for the default
BRIEF = (
    *("median_s", "q1_s", "q3_s", "joules", "watts", "metrics"),
    *(name for name, figure in figures_of(Trial).items() if figure.in_metrics),
)


def sweep_summary(sweep: Sweep, clock: str) -> dict[str, object]:
    """Returns what `sweep --json` prints. ``clock`` names the clock of its times."""

    def brief(trial: Trial | None) -> dict[str, object] | None:
        if trial is None:
            return None
        return {"config": dict(trial.config), **{name: getattr(trial, name) for name in BRIEF}}

    return {
        "path": str(sweep.path),
        "clock": clock,
        "best": brief(sweep.best),
        "default": brief(sweep.default),
        "speed_up": sweep.speed_up,
        "speed_up_interval": sweep.speed_up_interval,
        "trials": dict(sweep.counts),
        "refused": dict(sweep.refused),
        "sampler": sweep.sampler,
        "spent_s": dict(sweep.spent_s),
        "idle_share": sweep.idle_share,
        "interrupted": sweep.interrupted,
        "finalists": [
            {"relation": f.relation, "config": dict(f.config), "median_s": f.median_s}
            | ({"checked_launches": f.checked_launches} if f.checked_launches else {})
            | ({"sustained_s": f.sustained.sustained_s} if f.sustained else {})
            for f in sweep.finalists
        ],
    }


def print_sweep(sweep: Sweep, clock: str, out: str, kernel: str) -> None:
    """Prints the table at the end of a sweep, the path of its results, and the next command.

    ``kernel`` is the name or path that ``load_kernel`` takes.
    """
    rows = [_row(name, t, t.efficiency) for name, t in (("best", sweep.best), ("default", sweep.default)) if t]
    rows += [
        _row(f.relation, f, f.efficiency)
        for f in sweep.finalists
        if f.relation in ("fastest", "best", "same", "ambiguous") and sweep.best and f.config != sweep.best.config
    ]
    print_table(("", f"median ({clock})", "quartiles", "efficiency", "error / rms", "config"), rows, below="config")
    _print_relations({str(row[0]) for row in rows})
    for f in sweep.finalists[:1]:
        if f.sustained is not None:
            figures = (
                f"{seconds_text(f.sustained.sustained_s)} sustained, {seconds_text(f.sustained.short_s)} in a short run"
            )
            stdout.print(f"\nsustained    {figures} ({f.sustained.n} launches back to back)")
        if f.checked_launches > 1:
            stdout.print(
                f"\nchecked      {f.checked_launches} further launches of the best config checked, all correct"
            )
    if sweep.best is not None and (text := checks_text(sweep.best)):
        stdout.print(f"\nchecks       {text}", markup=False)
    if sweep.best is not None and (text := figures_text(sweep.best)):
        stdout.print(f"\nfigures      {text}", markup=False)
    if sweep.best is not None and sweep.default is not None and sweep.best.config == sweep.default.config:
        stdout.print("\nspeed-up     none: the default is the best")
    elif sweep.speed_up is not None:
        stdout.print(f"\nspeed-up     {speed_up_text(sweep.speed_up, sweep.speed_up_interval)}")
    elif sweep.best is None:
        stdout.print("\nno config passed verification and was timed")
    counts = ", ".join(f"{n} {status}" for status, n in sweep.counts.items())
    stdout.print(f"trials       {counts or 'none'}")
    folder = SweepFolder(sweep.path)
    trials = folder.current()
    if same := same_code_text(trials):
        stdout.print(f"             {same}", markup=False)
    if sweep.spent_s:
        parts = ", ".join(f"{what} {seconds_text(s)}" for what, s in sweep.spent_s.items() if s >= 0.01)
        stdout.print(f"time         {seconds_text(sum(sweep.spent_s.values()))}: {parts}")
        stdout.print(f"device       idle {percent(sweep.idle_share)} of wall time")
    if sweep.refused:
        n, by = sum(sweep.refused.values()), len(sweep.refused)
        stdout.print(f"excluded     {counted(n, 'config')} by {counted(by, 'constraint')} (see `autotune show`)")
    for trial in _first_failures(trials):
        why = (trial.message.splitlines() or ["no message"])[0]
        why = cut_middle(why, 160) if stdout.is_terminal else why
        launched = f" ({launch_text(trial)})" if trial.grid is not None else ""
        stdout.print(
            f"  {trial.status}{launched}: {why}\n    {folder.about().reproduce(trial.config, trial.seed or 0)}",
            markup=False,
        )
    stdout.print(f"results      {sweep.path}", markup=False)
    if sweep.interrupted:
        stdout.print("next         run the same command again to resume")
    elif sweep.best is not None:
        emit = command("autotune", "emit", sweep.path, "--out", out, *definition_words(kernel))
        stdout.print(f"next         {emit}", markup=False)


def _print_relations(shown: Collection[str]) -> None:
    """Explains the words of the table's first column that are not plain."""
    half = f"{100 * SAME:g} %"
    meanings = {
        Relation.SAME: f"the median is within {half} of the fastest",
        Relation.AMBIGUOUS: f"the median differs by more than {half}, but its 95 % interval overlaps the fastest's",
        Relation.FASTEST: f"it ties with the best, which was chosen because it has {PREFERENCE}",
    }
    lines = [f"{relation:<12} {meaning}" for relation, meaning in meanings.items() if relation in shown]
    if lines:
        stdout.print("\n" + "\n".join(lines), markup=False)


def kernel_summary(kernel: Kernel[Problem], device: Device, problem: Problem) -> dict[str, object]:
    """Returns the values that `autotune list` shows for a kernel, with the space of ``problem`` on ``device``."""
    space = kernel.space.enumerate(problem, device)
    return {
        "kernel": kernel.name,
        "computes": (inspect.getdoc(inspect.getmodule(type(kernel))) or "").split("\n")[0],
        "configs": len(space.configs),
        "refused": dict(space.refused),
        "device": device.name,
        "arch": device.arch,
        "problem": {
            f.name: {
                "default": getattr(kernel.tuned[0], f.name),
                "value": getattr(problem, f.name),
                "kind": "runtime" if f.metadata.get("runtime") else "baked",
                "help": f.metadata.get("help", ""),
            }
            for f in fields(kernel.problem_type)
        },
        "parameters": {name: list(p.values) for name, p in kernel.space.parameters.items()},
    }


def print_kernel(summary: dict[str, Any], with_refused: bool = False) -> None:
    """Prints one kernel of `autotune list`; ``with_refused``: also how many configs each constraint refuses."""
    stdout.print(f"{summary['kernel']}: {summary['computes']}", markup=False, style="bold")
    fields = summary["problem"].items()
    is_default = all(f["value"] == f["default"] for _, f in fields)
    rows = [(f"  {name}", f["value"], f["kind"], f["help"]) for name, f in fields]
    print_table(("  problem", "default" if is_default else "value", "", ""), rows)
    parameters = [(f"  {name}", " ".join(map(str, values))) for name, values in summary["parameters"].items()]
    print_table((f"  parameter ({summary['configs']} configs on {summary['arch']})", "values"), parameters)
    if with_refused:
        n_all = summary["configs"] + sum(summary["refused"].values())
        counts = [(f"  {summary['configs']}", f"allowed, of {n_all} combinations")]
        by_count = sorted(summary["refused"].items(), key=lambda refused: -refused[1])
        counts += [(f"  {n}", f"violate: {why}") for why, n in by_count]
        which = "the default problem" if is_default else "this problem"
        print_table(("  configs", f"for {which} on {summary['arch']}"), counts)


def _row(name: str, measured: Trial, efficiency: float | None) -> tuple[object, ...]:
    quartiles = f"{seconds_text(measured.q1_s)} .. {seconds_text(measured.q3_s)}"
    error = "-" if measured.max_error is None else f"{measured.max_error:.2g}"
    return name, seconds_text(measured.median_s), quartiles, percent(efficiency), error, measured.config


def _first_failures(trials: list[Trial]) -> list[Trial]:
    first: dict[str, Trial] = {}
    for trial in trials:
        if trial.status != Status.MEASURED:
            first.setdefault(trial.status, trial)
    return list(first.values())
