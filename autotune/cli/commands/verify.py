"""`autotune verify` checks variants against the reference, without timing."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.architecture import ARCHITECTURES
from ...core.config import Config
from ...core.definition import AnyKernel, problem_name
from ...core.errors import UsageError
from ...core.units import counted
from ...devices import Target, cuda, find_device
from ...recommend.distance import OTHER_DEVICE, kinship
from ...records.folder import SweepFolder, all_sweeps
from ...records.folder_lock import locked
from ...source.registry import named_kernels, recorded_kernel
from ...sweep.request import parse_config, problem_on, problems_on, resolve
from ...system.limits import DEADLINE
from ...system.processes import n_cpus
from ...trial.bench import Bench
from ...trial.verify_configs import Checking, Tally, builds_of, check_all, compile_all, sample_of
from ...validity.recheck import recheck
from ..console import ProgressLine, ProgressText, note, print_json, stdout
from ..stopped import STANDS, stopped
from .options import ConfigOption, DeviceOption, JsonOption, ProblemOption, in_range

N_CPUS = n_cpus()
Variants = list[tuple[Any, Config]]


def verify(
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel",
            metavar="NAME|x.py",
            help="A kernel's name, or the path of its definition (x.py); with --records, that of a recorded kernel "
            "that is not installed.",
        ),
    ] = "",
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
    seed: Annotated[
        int,
        typer.Option(
            "--seed",
            min=0,
            help="Seed of the drawn sizes and values of the first variant; that of a failed trial is its number.",
        ),
    ] = 0,
    records: Annotated[
        list[Path],
        typer.Option(
            "--records",
            help="Make today's checks of the winners and defaults (--all: of all configs) of these recorded sweeps of "
            "the device, or of others of its architecture, and record them. Repeatable.",
        ),
    ] = [],
    json: JsonOption = False,
) -> None:
    """Check variants against the reference at edge sizes, without timing. Ctrl-C prints the results so far.

    Without --problem, the kernel's default problem and its extra problems are checked.
    """
    if records:
        return _verify_records(records, kernel, find_device(device), everything, deadline)
    if not kernel:
        raise UsageError("name a kernel, --kernel ddc, or recorded sweeps, --records results")
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
            checking = Checking(place, N_CPUS - 1 or 1, deadline, builds_of(place, build), seed)
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


def _verify_records(paths: list[Path], kernel: str, target: Target, everything: bool, deadline_s: float) -> None:
    """Makes today's checks of recorded configs, and prints how many passed."""
    named = named_kernels([kernel] if kernel else [])
    folders = all_sweeps(paths)
    counts: Counter[str] = Counter()
    n_done, is_stopped = 0, False
    try:
        with Bench(target, note=note) as bench, ProgressLine(len(folders)) as line:
            for n_done, folder in enumerate(folders):
                end = f"; {counts['wrong']} wrong"
                if line.update(n_done, ProgressText(folder.path.parent.name, folder.path.name, end)):
                    note(f"  {n_done} of {counted(len(folders), 'sweep')}{end}{line.left(n_done)}")
                counts.update(_verify_record(folder, named, bench, everything, deadline_s))
    except KeyboardInterrupt:
        is_stopped = True
    left = (
        f"; {counted(counts['left'], 'sweep')} left, of other architectures or as said above" if counts["left"] else ""
    )
    found = f"{counts['passed']} recorded configs passed today's checks, {counts['wrong']} are wrong"
    stdout.print(f"verified     {found}{left}")
    if is_stopped:
        raise stopped(f"{n_done} of {counted(len(folders), 'sweep')} were verified, and their records say so")
    if counts["wrong"] or not counts["passed"]:
        raise typer.Exit(1)


def _verify_record(
    folder: SweepFolder, named: dict[str, AnyKernel], bench: Bench, everything: bool, deadline_s: float
) -> Counter[str]:
    """Makes today's checks of one sweep; returns how many "passed" and are "wrong", and if it is "left"."""
    counts: Counter[str] = Counter()
    if kinship(folder.about().device, bench.target.device) == OTHER_DEVICE:
        return Counter(left=1)
    try:
        definition = recorded_kernel(folder.about().content, named)
        with locked(folder.path, note):
            for found in recheck(folder, definition, bench, deadline_s, everything):
                counts["passed"] += found.failure is None
                counts["wrong"] += found.is_wrong
                if found.failure is not None:
                    note(f"  {folder.path.name} {found.trial.config}: {found.failure}")
    except (UsageError, MemoryError) as error:
        counts["left"] = 1
        note(f"left {folder.path}: {str(error) or 'out of memory'}")
        if isinstance(error, MemoryError):
            bench.worker.release()  # the next sweep has what this one kept
    return counts


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
