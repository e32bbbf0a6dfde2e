"""`autotune sweep` tunes one problem, or several in sequence."""

from pathlib import Path
from typing import Annotated

import typer

from ...devices import Target
from ...records.measurement import Protocol
from ...records.objectives import FIGURES, read_metrics
from ...search import SAMPLERS
from ...source.registry import kernel_reference
from ...sweep.request import parse_restriction, problems_on, resolve
from ...sweep.run import run_sweep
from ...sweep.settings import (
    EFFORTS_HELP,
    GPU,
    HOST,
    Settings,
    effort,
)
from ...system.limits import DEADLINE, DURATION, SEED
from ...system.memory import check_memory
from ...trial.bench import COMPILE_PROCESSES, Bench
from ...trial.compile import DEADLINE_S
from .. import report
from ..console import ConsoleProgress, note, print_json
from ..stopped import STANDS, stopped
from .options import (
    BeginOption,
    DashboardOption,
    DeviceOption,
    JsonOption,
    KernelOption,
    ProblemOption,
    ResultsOption,
    duration,
    in_range,
)


def sweep(
    kernel: KernelOption,
    problem: ProblemOption = [],
    device: DeviceOption = "auto",
    effort_name: Annotated[str, typer.Option("--effort", help=EFFORTS_HELP)] = "normal",
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            min=1,
            help=f"Configurations to try. [default: {GPU.trials}; host: {HOST.trials}; set by --effort]",
        ),
    ] = None,
    time: Annotated[
        float | None,
        typer.Option(
            "--time",
            parser=duration,
            metavar="SECONDS|5m|2h",
            callback=in_range(DURATION),
            help="Start no new trial after this time. [default: no limit]",
        ),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            help=f"auto (exhaustive if the budget allows), {', '.join(SAMPLERS)}, optuna:NSGAIISampler (any of "
            "Optuna's by its class; optuna:package.module.Class of another package), or an installed one. "
            "[default: auto]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", callback=in_range(SEED), help="Seed of the sampler.")] = 0,
    hints: Annotated[
        int,
        typer.Option(
            "--hints",
            min=0,
            help="How many predictions of a model of recorded sweeps are tried first. Recorded winners are tried "
            "first, too: those of this problem (on similar devices, or before the kernel was edited) and of the two "
            "nearest problems. 0 is a cold start: no earlier sweep is used.",
        ),
    ] = Settings.n_hints,
    only: Annotated[
        list[str],
        typer.Option("--only", help="Search only ALGORITHM=register, WGS=64, ...; repeat for more values."),
    ] = [],
    samples: Annotated[
        int, typer.Option("--samples", min=3, max=1_000_000, help="Timed launches per trial.")
    ] = Protocol.n_samples,
    finalists: Annotated[
        int | None,
        typer.Option(
            "--finalists",
            min=1,
            help=f"How many of the best configs are timed again in the final round. [default: {Settings.n_finalists}]",
        ),
    ] = None,
    sustained: Annotated[
        float,
        typer.Option(
            "--sustained",
            callback=in_range(DURATION),
            help="Also launch each finalist back to back for this many seconds.",
        ),
    ] = Settings.sustained_s,
    checked_launches: Annotated[
        int | None,
        typer.Option(
            "--checked-launches",
            min=0,
            help="Further launches of the winner to check, to catch rare races. "
            f"[default: {GPU.checked_launches}; host: {HOST.checked_launches}; set by --effort]",
        ),
    ] = None,
    objective: Annotated[
        list[str],
        typer.Option(
            "--objective",
            help="What to minimise: time, energy (joules per launch, if the device has a meter), or a --metric; "
            "max:NAME maximises. Two objectives give the Pareto front, and the first chooses the winner. "
            "[default: time]",
        ),
    ] = [],
    metric: Annotated[
        list[str],
        typer.Option(
            "--metric",
            help="Your own figure for each trial, NAME=EXPRESSION: an expression of parameters, sizes, earlier metrics "
            f"and {', '.join(FIGURES)} (seconds, joules, watts, bytes); for example 'gbps=8*n/time/1e9'.",
        ),
    ] = [],
    energy: Annotated[
        float,
        typer.Option(
            "--energy-time",
            callback=in_range(DURATION),
            help="To measure energy, launch each config back to back for this many seconds.",
        ),
    ] = Settings.energy_s,
    hot: Annotated[
        bool, typer.Option("--hot", help="Keep the cache warm between launches (the record says so).")
    ] = False,
    compile_processes: Annotated[
        int,
        typer.Option("--compile-processes", min=1, max=1024, help="Compiler processes that run ahead of the device."),
    ] = COMPILE_PROCESSES,
    compile_deadline: Annotated[
        float,
        typer.Option(
            "--compile-deadline", callback=in_range(DEADLINE), help="Time limit for one compilation, in seconds."
        ),
    ] = DEADLINE_S,
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline",
            callback=in_range(DEADLINE),
            help="Time limit for a verification or measurement, in seconds.",
        ),
    ] = Settings.launch_deadline_s,
    results: ResultsOption = Path("results"),
    begin_from: BeginOption = None,
    dashboard: DashboardOption = None,
    json: JsonOption = False,
) -> None:
    """Find the fastest correct configuration and record every trial. The same command, run again, resumes."""
    definition, target = resolve(kernel, device)
    limits = {"trials": trials, "sampler": sampler, "n_finalists": finalists, "checked_launches": checked_launches}
    settings = Settings(
        results=results,
        begin_from=begin_from,
        dashboard=dashboard,
        time_s=time,
        seed=seed,
        n_hints=hints,
        restrict=parse_restriction(definition, only),
        protocol=Protocol(n_samples=samples, cold=not hot),
        launch_deadline_s=deadline,
        sustained_s=sustained,
        objectives=tuple(objective) or Settings.objectives,
        metrics=read_metrics(metric),
        energy_s=energy,
        **effort(effort_name) | {name: value for name, value in limits.items() if value is not None},
    )
    clock = target.module.clock
    problems = problems_on(definition, problem, target)
    for chosen in problems:
        check_memory(definition, chosen)
    if device == "auto":
        _note_device(target)
    done = []
    with Bench(target, compile_processes, compile_deadline, note=note) as bench:
        for chosen in problems:
            progress = ConsoleProgress(clock)
            try:
                outcome = run_sweep(definition, chosen, bench, settings, progress)
            finally:
                progress.stop()
            done.append(outcome)
            if not json:
                report.print_sweep(outcome, clock, out="tuned", kernel=kernel_reference(definition))
            if outcome.interrupted:
                break
    if json:
        print_json([report.sweep_summary(outcome, clock) for outcome in done])
    if done[-1].interrupted:
        raise stopped(STANDS["sweep"])
    if any(outcome.best is None for outcome in done):
        raise typer.Exit(1)


def _note_device(target: Target) -> None:
    if target.kind == "host":
        note("no GPU found: using the device `host` (CPU); its times say nothing about a GPU")
    else:
        note(f"using {target.identifier}, {target.device.name}")
