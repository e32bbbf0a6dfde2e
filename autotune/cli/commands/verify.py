"""`autotune verify` checks variants against the reference, without timing."""

from contextlib import closing
from typing import Annotated, Any

import typer

from ...core.architecture import ARCHITECTURES
from ...core.config import Config
from ...core.definition import AnyKernel, problem_name
from ...core.errors import UsageError
from ...devices import Target, cuda
from ...sweep.request import parse_config, problem_on, problems_on, resolve
from ...system.limits import DEADLINE
from ...system.processes import n_cpus
from ...trial.verify_configs import Checking, Tally, builds_of, check_all, compile_all, sample_of
from ..console import ProgressLine, ProgressText, note, print_json, stdout
from ..stopped import STANDS, stopped
from .options import ConfigOption, DeviceOption, JsonOption, KernelOption, ProblemOption, in_range

N_CPUS = n_cpus()
Variants = list[tuple[Any, Config]]


def verify(
    kernel: KernelOption,
    problem: ProblemOption = [],
    device: DeviceOption = "auto",
    config: ConfigOption = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Verify every allowed configuration instead of a sample; `list` counts them.")
    ] = False,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", min=1, help="Configurations to verify for each problem, chosen to cover all parameter values."
        ),
    ] = 12,
    compile_for: Annotated[
        list[str],
        typer.Option(
            "--compile-for",
            help=f"Compile for this architecture ({', '.join(ARCHITECTURES)}) by NVRTC, without a GPU; nothing is run.",
        ),
    ] = [],
    build: Annotated[
        str, typer.Option("--build", help="Verify only this build: check or plain on host, cubin on cuda.")
    ] = "",
    deadline: Annotated[
        float,
        typer.Option("--deadline", callback=in_range(DEADLINE), help="Time limit for one variant, in seconds."),
    ] = 60.0,
    json: JsonOption = False,
) -> None:
    """Check variants against the reference at edge sizes, without timing. Ctrl-C prints the results so far.

    Without --problem, the kernel's default problem and its extra problems are checked.
    """
    definition, target = resolve(kernel, device)
    targets = [Target("cuda", arch, cuda.of_architecture(arch)) for arch in compile_for] or [target]
    problems = problems_on(definition, problem, targets[0])
    if not problem:
        problems += [problem_on(definition, {}, targets[0], base) for base in definition.extra_problems]
    work = {place: _work(definition, problems, config, place, None if everything else sample) for place in targets}
    tally = Tally(definition, sum(map(len, work.values())))
    is_stopped = False
    try:
        for place, of_place in work.items():
            checking = Checking(place, N_CPUS - 1 or 1, deadline, builds_of(place, build))
            note(f"{definition.name}: {'compiling' if compile_for else 'verifying'} on {place.identifier}")
            _follow(tally, (compile_all if compile_for else check_all)(definition, of_place, checking))
    except KeyboardInterrupt:
        is_stopped = True
    if json:
        print_json(tally.as_json())
    else:
        stdout.print(str(tally), markup=False)
    if is_stopped:
        raise stopped(f"{tally.n_done} of {tally.n_total} variants were checked; {STANDS['verify']}")
    if not tally.all_passed:
        raise typer.Exit(1)


def _work(kernel: AnyKernel, problems: list[Any], config: str, place: Target, n: int | None) -> Variants:
    """Returns the variants to check on ``place``: ``config`` at each problem, or ``n`` allowed ones (None: all)."""
    work: Variants = []
    for problem in problems:
        if config:
            work.append((problem, parse_config(kernel, config, problem, place)))
            continue
        enumeration = kernel.space.enumerate(problem, place.device)
        if not enumeration.configs:
            why = f"no configuration is allowed for {problem_name(problem)}: {enumeration.reasons}"
            raise UsageError(f"{kernel.name}: {why}")
        work += [(problem, chosen) for chosen in sample_of(enumeration.configs, n)]
    return work


def _follow(tally: Tally, checks: Any) -> None:
    """Counts ``checks`` as they arrive, and prints each failure at once."""
    with ProgressLine(tally.n_total, tally.n_done) as line, closing(checks):
        for outcome in checks:
            tally.count(outcome)
            progress = ProgressText(outcome.status, tally.variant(outcome), f"; {len(tally.failed)} failed")
            is_due = line.update(tally.n_done, progress)
            if outcome in tally.failed[-1:]:
                note(tally.line(outcome))
            elif tally.n_total == 1:
                note(f"  {tally.line(outcome)}")
            elif is_due:
                note(f"  {tally.n_done} of {tally.n_total}, {len(tally.failed)} failed{line.left(tally.n_done)}")
