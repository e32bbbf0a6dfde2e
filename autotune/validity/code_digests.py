"""Stores the machine code digests of recorded trials for the compiler at hand, so that templates may be rewritten.

That is known only while their sources are as they were: of a trial whose source has changed nothing is found any more.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..core.definition import Device, Kernel, P
from ..core.errors import TrialFailure, UsageError
from ..devices import Target
from ..devices.base import Binary
from ..records.as_recorded import config_of, of_definition, problem_of, protocol_of
from ..records.damage import Damaged, tell
from ..records.folder import SweepFolder
from ..records.trial import Trial
from ..source.registry import reference_of
from ..source.render import render
from ..system.processes import Died
from ..trial.compile import Asked, CompilePool, Pending


@dataclass(frozen=True)
class Found:
    """Counts of one sweep's trials: those with a known digest, with a new one, and without."""

    n_known: int
    n_new: int
    n_changed: int  # trials whose source has changed or does not compile


def digest(folder: SweepFolder, kernel: Kernel[Any], pool: CompilePool) -> Found:
    """Add the digests of all trials in ``folder`` by the compiler of ``pool``.

    Raises:
        UsageError: when the record is not of that definition, or does not say how it was measured.
    """
    about, known, compiler = folder.about(), folder.digests(), pool.compiler
    problem, protocol = of_definition(kernel, problem_of, kernel, about), protocol_of(about)
    trials = folder.trials()
    lacking = [t for t in trials if not known.code(t, compiler) or not known.condition(t)]
    codes, conditions = dict(known.codes.get(compiler, {})), dict(known.conditions)
    started = [(t, pending) for t in lacking if (pending := _start(kernel, problem, t, pool)) is not None]
    reference, fields = reference_of(kernel), asdict(problem)
    asked = [pool.conditions(Asked(reference, fields, trial.config, protocol)) for trial, _ in started]
    n_new = 0
    for (trial, pending), asking in zip(started, asked, strict=True):
        try:
            code, found = pending.result().code, asking.result()
        except (TrialFailure, UsageError, TimeoutError, Died):
            continue
        codes[str(trial.number)], conditions[str(trial.number)] = code, found
        n_new += 1
    if n_new:
        folder.write_digests(replace(known, codes={**known.codes, compiler: codes}, conditions=conditions))
    return Found(len(trials) - len(lacking), n_new, len(lacking) - n_new)


def pools(folders: Iterable[SweepFolder], n_processes: int) -> Iterator[tuple[CompilePool, list[SweepFolder]]]:
    """Yields the sweeps of each device with compile processes for it; the device need not be present."""
    by_device: dict[Device, list[SweepFolder]] = {}
    for folder in folders:
        try:
            by_device.setdefault(folder.about().device, []).append(folder)
        except Damaged as error:
            tell(f"{error}. This sweep is left out")
    for device, its_own in by_device.items():
        with CompilePool(Target(device.kind, device.name, device), n_processes) as pool:
            yield pool, its_own


def _start(kernel: Kernel[P], problem: P, trial: Trial, pool: CompilePool) -> Pending[Binary] | None:
    """Start compiling what ``trial`` ran; returns None if its source has changed since."""
    try:
        variant = of_definition(kernel, render, kernel, problem, config_of(kernel, trial.config))
    except (TrialFailure, UsageError):
        return None
    return pool.submit(variant) if variant.key == trial.key else None
