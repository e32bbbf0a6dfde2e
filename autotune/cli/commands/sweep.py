"""`autotune sweep` tunes one problem, or several in sequence."""

from typing import Annotated, Any

import typer

from ...records.objectives import read_metrics
from ...source.registry import kernel_reference
from ...sweep.request import parse_restriction, problems_on, resolve
from ...sweep.run import run_sweep
from ...sweep.settings import EFFORTS_HELP, Settings, effort
from ...system.limits import DEADLINE
from ...system.memory import check_memory
from ...system.setting import COMMANDS, settings_given
from ...trial.bench import COMPILE_PROCESSES, Bench
from ...trial.compile import DEADLINE_S
from .. import report
from ..console import ConsoleProgress, note, print_json
from ..stopped import STANDS, stopped
from .declared_options import given_of, with_settings
from .options import DeviceOption, JsonOption, KernelOption, ProblemOption, in_range


@with_settings(Settings)
def sweep(
    kernel: KernelOption,
    problem: ProblemOption = [],
    device: DeviceOption = "auto",
    effort_name: Annotated[str, typer.Option("--effort", help=EFFORTS_HELP)] = "normal",
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
    json: JsonOption = False,
    **options: Any,
) -> None:
    """Find the fastest correct configuration and record every trial. The same command, run again, resumes."""
    definition, target = resolve(kernel, device)
    settings = given_of(Settings, options)
    if "metrics" in settings:
        settings["metrics"] = read_metrics(settings["metrics"])
    chosen_settings = Settings(**effort(effort_name) | settings_given(Settings, settings, COMMANDS))
    parse_restriction(definition, chosen_settings.only)  # a mistake is told before anything starts
    clock = target.module.clock
    problems = problems_on(definition, problem, target)
    for chosen in problems:
        check_memory(definition, chosen)
    if device == "auto" and target.kind == "host":
        note("no GPU found: using the device `host` (CPU); its times say nothing about a GPU")
    elif device == "auto":
        note(f"using {target.identifier}, {target.device.name}")
    done = []
    with Bench(target, compile_processes, compile_deadline, note=note) as bench:
        for chosen in problems:
            progress = ConsoleProgress()
            try:
                outcome = run_sweep(definition, chosen, bench, chosen_settings, progress)
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
