"""Stores digests of machine code by the present compiler, so that templates may be rewritten.

Digests of recorded trials can be computed only while their sources are unchanged. Digests of present sources show
later, without a compiler, that a winner has the measured machine code although its text has changed.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from ..core.definition import AnyKernel, Device, Kernel, P
from ..core.errors import TrialFailure, UsageError
from ..devices import Target
from ..devices.base import Binary
from ..records.as_recorded import config_of, of_definition, problem_of, protocol_of
from ..records.damage import Damaged, tell
from ..records.digests import Digests
from ..records.folder import SweepFolder
from ..records.record import SweepRecord
from ..records.trial import Trial
from ..rendering.render import Variant, render
from ..source.registry import kernel_reference
from ..system.processes import Died
from ..trial.compile import CompilePool, Pending, RecordedConfig


@dataclass(frozen=True)
class DigestCounts:
    """Numbers of one sweep's trials: with a known digest, with a new one, and without one."""

    n_known: int
    n_new: int
    n_changed: int  # trials whose source has changed or does not compile
    n_texts: int  # new digests of present texts


def add_digests(folder: SweepFolder, kernel: AnyKernel, pool: CompilePool) -> DigestCounts:
    """Adds the digests of all trials in ``folder``, and of the final round's texts, by the compiler of ``pool``.

    ``folder`` is read with the kernel's present space.

    Raises:
        UsageError: when the record does not fit the definition, or does not state how it was measured.
    """
    folder = folder.of_space(kernel.space)
    about, digests, compiler = folder.about(), folder.digests(), pool.compiler
    problem, protocol = of_definition(kernel, problem_of, kernel, about), protocol_of(about)
    trials = folder.trials()
    lacking = [t for t in trials if not digests.code(t, compiler) or not digests.condition(t)]
    codes, conditions = dict(digests.codes.get(compiler, {})), dict(digests.conditions)
    started = [(t, pending) for t in lacking if (pending := _start(kernel, problem, t, pool)) is not None]
    reference, fields = kernel_reference(kernel), asdict(problem)
    tasks = [pool.conditions(RecordedConfig(reference, fields, trial.config, protocol)) for trial, _ in started]
    n_new = 0
    for (trial, pending), asking in zip(started, tasks, strict=True):
        try:
            code, condition = pending.result().code, asking.result()
        except (TrialFailure, UsageError, TimeoutError, Died):
            continue
        codes[str(trial.number)], conditions[str(trial.number)] = code, condition
        n_new += 1
    updated = replace(digests, codes={**digests.codes, compiler: codes}, conditions=conditions) if n_new else digests
    texts = _texts(folder, kernel, problem, pool, updated)
    if texts:
        updated = replace(updated, texts={**digests.texts, compiler: {**digests.texts.get(compiler, {}), **texts}})
    if n_new or texts:
        folder.write_digests(updated)
    return DigestCounts(len(trials) - len(lacking), n_new, len(lacking) - n_new, len(texts))


def _texts(folder: SweepFolder, kernel: Kernel[P], problem: P, pool: CompilePool, known: Digests) -> dict[str, str]:
    """Returns key -> machine code digest of the final round's present texts, as far as these have changed."""
    sweep = SweepRecord.of(folder)
    named = [each for each in (sweep.winner, sweep.default, *sweep.finalists) if each is not None]
    latest = {trial.config: trial for trial in sweep.trials}
    tasks = {}
    for trial in {each.config: latest[each.config] for each in named if each.config in latest}.values():
        variant, code = _variant(kernel, problem, trial), known.code(trial, pool.compiler)
        if code and variant is not None and variant.key not in {trial.key, *known.texts.get(pool.compiler, {})}:
            tasks[variant.key] = pool.code_of(variant, code)
    digests = {}
    for key, asking in tasks.items():
        with suppress(TimeoutError, Died, UsageError):
            if code := asking.result():
                digests[key] = code
    return digests


def pools(folders: Iterable[SweepFolder], n_processes: int) -> Iterator[tuple[CompilePool, list[SweepFolder]]]:
    """Yields compile processes and sweeps for each device; the device need not be present."""
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
    """Starts to compile the source of ``trial``. Returns None if the source has changed since."""
    variant = _variant(kernel, problem, trial)
    return pool.submit(variant) if variant is not None and variant.key == trial.key else None


def _variant(kernel: Kernel[P], problem: P, trial: Trial) -> Variant | None:
    """Returns the config of ``trial`` as it renders today, or None if it does not."""
    try:
        return of_definition(kernel, render, kernel, problem, config_of(kernel, trial.config))
    except (TrialFailure, UsageError):
        return None
