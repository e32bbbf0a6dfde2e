"""`autotune sweep`: the main job, for one problem or several, one after the other."""

from pathlib import Path
from typing import Annotated

import typer

from ...devices import Target
from ...search import SAMPLERS
from ...source.registry import reference_of
from ...sweep.loop import run_sweep
from ...sweep.request import parse_restriction, problems_on, resolve
from ...sweep.settings import (
    EFFORTS_HELP,
    N_CHECKED,
    N_CHECKED_ELSEWHERE,
    N_TRIALS,
    N_TRIALS_ELSEWHERE,
    Settings,
    effort,
)
from ...system.limits import DEADLINE, DURATION, SEED
from ...system.memory import check_memory
from ...trial.bench import COMPILE_PROCESSES, Bench
from ...trial.compile import DEADLINE_S
from ...trial.measure import Protocol
from .. import report
from ..console import ConsoleProgress, print_json, stderr
from .options import DeviceOption, JsonOption, KernelOption, ProblemOption, ResultsOption, within


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
            help=f"Configurations to try. [default: {N_TRIALS_ELSEWHERE}; host: {N_TRIALS['host']}; of --effort]",
        ),
    ] = None,
    time: Annotated[
        float | None,
        typer.Option(
            "--time", callback=within(DURATION), help="Seconds after which no trial begins. [default: no limit]"
        ),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler", help=f"auto (exhaustive if the budget allows), {', '.join(SAMPLERS)}. [default: auto]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", callback=within(SEED), help="Of the sampler.")] = 0,
    hints: Annotated[
        int,
        typer.Option(
            "--hints", min=0, help="Configs taken over from recorded sweeps of neighbouring problems; 0 starts cold."
        ),
    ] = Settings.n_hints,
    only: Annotated[
        list[str], typer.Option("--only", help="Keep to ALGORITHM=register, WGS=64 ...; repeat for more values.")
    ] = [],
    samples: Annotated[
        int, typer.Option("--samples", min=3, max=1_000_000, help="Timed launches of a trial.")
    ] = Protocol.n_samples,
    finalists: Annotated[
        int | None,
        typer.Option(
            "--finalists",
            min=1,
            help=f"How many of the best are measured again, side by side. [default: {Settings.n_finalists}]",
        ),
    ] = None,
    sustained: Annotated[
        float,
        typer.Option(
            "--sustained",
            callback=within(DURATION),
            help="Seconds that each finalist is launched back to back as well.",
        ),
    ] = Settings.sustained_s,
    checked_launches: Annotated[
        int | None,
        typer.Option(
            "--checked-launches",
            min=0,
            help="Launches of the winner whose outputs are all checked: a race may leave thousands right. "
            f"[default: {N_CHECKED_ELSEWHERE}; host: {N_CHECKED['host']}; of --effort]",
        ),
    ] = None,
    hot: Annotated[bool, typer.Option("--hot", help="Leave the cache warm between launches; recorded.")] = False,
    compile_processes: Annotated[
        int, typer.Option("--compile-processes", min=1, max=1024, help="Compilers at work ahead of the device.")
    ] = COMPILE_PROCESSES,
    compile_deadline: Annotated[
        float, typer.Option("--compile-deadline", callback=within(DEADLINE), help="Seconds that one compile may take.")
    ] = DEADLINE_S,
    deadline: Annotated[
        float,
        typer.Option(
            "--deadline", callback=within(DEADLINE), help="Seconds that one verification or measurement may take."
        ),
    ] = Settings.launch_deadline_s,
    results: ResultsOption = Path("results"),
    json: JsonOption = False,
) -> None:
    """Find the fastest correct configuration, recording every trial. Started again, it goes on where it stopped."""
    definition, target = resolve(kernel, device)
    given = {"trials": trials, "sampler": sampler, "n_finalists": finalists, "checked_launches": checked_launches}
    settings = Settings(
        results=results,
        time_s=time,
        seed=seed,
        n_hints=hints,
        restrict=parse_restriction(definition, only),
        protocol=Protocol(n_samples=samples, cold=not hot),
        launch_deadline_s=deadline,
        sustained_s=sustained,
        **effort(effort_name) | {name: value for name, value in given.items() if value is not None},
    )
    clock = target.module.clock
    problems = problems_on(definition, problem, target)
    for chosen in problems:
        check_memory(definition, chosen)
    if device == "auto":
        _tell_device(target)
    done = []
    with Bench(target, compile_processes, compile_deadline, note=_note) as bench:
        for chosen in problems:
            outcome = run_sweep(definition, chosen, bench, settings, ConsoleProgress(clock))
            done.append(outcome)
            if not json:
                report.print_sweep(outcome, clock, out="tuned", kernel=reference_of(definition))
            if outcome.interrupted:
                break
    if json:
        print_json([report.sweep_summary(outcome, clock) for outcome in done])
    if done[-1].interrupted:
        raise typer.Exit(130)
    if any(outcome.best is None for outcome in done):
        raise typer.Exit(1)


def _tell_device(target: Target) -> None:
    if target.kind == "host":
        _note("no GPU found: using the device `host`, whose times are host time and tell nothing of a GPU")
    else:
        _note(f"using {target.identifier}, {target.device.name}")


def _note(text: str) -> None:
    stderr.print(text, markup=False)
