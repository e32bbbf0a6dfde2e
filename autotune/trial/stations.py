"""Takes one compiled config through the stations: checked, verified, measured. The result is always a row."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import Device, Launch, P, problem_name
from ..core.digest import digest
from ..core.errors import Status, TrialFailure, UsageError
from ..core.schema import value_text
from ..core.work import rates_of
from ..devices.base import Binary
from ..records.checks_made import OF_ANSWERS, TIMED_SIZE
from ..records.measurement import Measurement
from ..records.trial import Trial
from ..runtime.nvrtc import Figures
from ..system.processes import Died
from .compile import MOST_CACHES_LOST, CompileResult, RecordedConfig
from .context import Context
from .measure import MEASURING
from .oracle import Oracle
from .verify import Verdict
from .worker import TrialReport

UNVERIFIED = "unverified"  # begins the remark on outputs that were not compared with answers


@dataclass(frozen=True)
class Ran:
    """A trial, the oracle of the next one, and the wall time of each activity in seconds."""

    trial: Trial
    oracle: Oracle
    spent_s: Mapping[str, float]


def run_stations(
    context: Context[P], oracle: Oracle, number: int, compiled: CompileResult, incumbent_s: float | None
) -> Ran:
    """Checks, verifies and measures a compiled config. A failure of the variant is a trial, not an exception.

    Raises:
        UsageError: if the inputs and the reference of the timed problem cannot be made.
    """
    config, variant, binary = compiled.config, compiled.variant, compiled.binary
    trial = Trial(
        number=number,
        status=Status.MEASURED,
        config=config,
        key=variant.key if variant else None,
        stamp=stamp(context),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    try:
        if isinstance(binary, TrialFailure):
            raise binary
        geometry = context.kernel.launch(context.problem, config)
        trial = _checked(context, trial, binary, geometry)
    except TrialFailure as failure:
        return Ran(replace(trial, status=failure.status, message=failure.message), oracle, {})
    tried, binary, spent_s = _on_device(context, oracle, config, binary, incumbent_s, number)
    told, failed, remark = tried.verified, tried.failure, ""
    if context.judge is not None and failed is None:
        try:
            remark = context.judge(oracle.job(config, binary), context.deadline_s)
        except TrialFailure as refused:
            failed = refused
    elif not context.has_answers:
        remark = f"{UNVERIFIED}: the definition has no answer for this size"
    trial = replace(
        trial, conditions=told.conditions if told else "", verify_s=tried.verify_s, measure_s=tried.measure_s
    )
    if failed is not None:
        return Ran(replace(trial, status=failed.status, message=failed.message, seed=number), oracle, spent_s)
    assert told is not None and told.verdict is not None and tried.measurement is not None
    oracle = oracle.after(number, config, binary, told.verdict)
    measured = _measured(replace(trial, message=remark), context, oracle, told.verdict, tried.measurement)
    if not context.has_answers:  # a judge that compares says nothing of errors
        measured = replace(measured, max_error=None, rms_error=None)
    if remark.startswith(UNVERIFIED):
        checks = tuple(check for check in measured.checks if check not in OF_ANSWERS)
        measured = replace(measured, checks=checks, max_error=None, rms_error=None)
    return Ran(measured, oracle, spent_s)


def measured_alike(context: Context[P], trials: Iterable[Trial], number: int, compiled: CompileResult) -> Trial | None:
    """Returns the trial of a compiled config whose machine code and launches a measured one of ``trials`` has, or None.

    The names of functions do not count, since instances of a template differ in them.
    """
    binary, config = compiled.binary, compiled.config
    if not isinstance(binary, Binary) or compiled.variant is None or not binary.code:
        return None
    try:
        launch = context.kernel.launch(context.problem, config)
    except TrialFailure:
        return None
    alike = {
        trial.conditions: trial
        for trial in trials
        if (trial.code, trial.compiler, trial.status) == (binary.code, context.compiler, Status.MEASURED)
        and (trial.same_as, trial.grid, trial.block) == (None, launch.grid, launch.block)
        and trial.config != config
        and trial.conditions
    }
    first = alike.get(_conditions(context, config)) if alike else None
    if first is None:
        return None
    own = replace(first, number=number, config=config, key=compiled.variant.key, same_as=first.number)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return replace(own, at=at, compile_s=binary.compile_s, verify_s=None, measure_s=None)


def _conditions(context: Context[P], config: Config) -> str:
    """Returns the digest of a config's conditions, which a compile process computes; "" if the definition fails."""
    recorded = RecordedConfig(context.reference, context.fields, config, context.protocol)
    try:
        return context.bench.pool.conditions(recorded, context.rank).result()
    except (TrialFailure, TimeoutError, Died, UsageError):
        return ""


def _checked(context: Context[P], trial: Trial, binary: Binary, geometry: Launch) -> Trial:
    """Returns ``trial`` with the figures of its binary. Raises TrialFailure where the device cannot launch it."""
    try:
        trial = _with_binary(trial, context.compiler, binary, geometry)
        check_limits(binary, geometry, context.target.device)
        if not isinstance(binary.files, Mapping):
            raise TypeError(f"its files are {value_text(binary.files)}, must be paths by name")
    except (TypeError, ValueError, AttributeError, StopIteration) as error:  # anybody may write a device
        raise TrialFailure(
            Status.DEFINITION_FAILED, f"the device's compile() returned a wrong Binary: {error}"
        ) from None
    return trial


def stamp(context: Context[P]) -> str:
    """Returns a digest of what outcomes depend on beside the source: sizes, protocol, compiler, definition .."""
    name, protocol = problem_name(context.problem), str(context.protocol)
    return digest(name, protocol, context.compiler, f"measuring {MEASURING}", context.definition)


def check_limits(binary: Binary, launch: Launch, device: Device) -> None:
    """Refuses a launch, or one that follows it, that the driver would refuse; the message has the figures.

    Raises:
        TrialFailure: resources.
    """
    for step in launch.steps:
        _check_limits(binary.of(step.function), step, device)


def _check_limits(figures: Figures, launch: Launch, device: Device) -> None:
    shared = launch.shared_bytes + (figures.shared_bytes or 0)
    registers = (figures.registers or 0) * launch.n_threads
    for what, value, limit in (
        ("threads in a block", launch.n_threads, device.max_threads_per_block),
        ("bytes of shared memory in a block", shared, device.max_shared_bytes),
        ("registers in a block", registers, device.registers_per_block),
        *((f"blockDim.{axis}", n, most) for axis, n, most in zip("xyz", launch.block, device.max_block, strict=True)),
        *((f"gridDim.{axis}", n, most) for axis, n, most in zip("xyz", launch.grid, device.max_grid, strict=True)),
    ):
        if value > limit:
            where = f"{launch.function}(): " if launch.function else ""
            raise TrialFailure(Status.RESOURCES, f"{where}{value} {what}; {device.name} has {limit}")


def with_rates(trial: Trial, context: Context[P]) -> Trial:
    """Returns ``trial``, which must have a median, with its GB/s, TFLOP/s and efficiency."""
    assert trial.median_s is not None
    rates = rates_of(context.kernel.work(context.problem), context.bench.ceilings)
    own: dict[str, Any] = {name: rate(trial.median_s) for name, rate in rates.items()}
    return replace(trial, **own)


def _on_device(
    context: Context[P], oracle: Oracle, config: Config, binary: Binary, incumbent_s: float | None, seed: int
) -> tuple[TrialReport, Binary, dict[str, float]]:
    """Verifies and measures. If the cache is deleted meanwhile, its files are made again.

    Returns the report, the binary that ran, and the wall time of each activity in seconds.
    """
    for _ in range(MOST_CACHES_LOST):
        with suppress(FileNotFoundError):  # a deletion takes a while: other files may still be there
            tried, spent_s = _tried(context, oracle, config, binary, incumbent_s, seed)
            if tried.failure is None or (oracle.is_there and all(map(Path.exists, binary.files.values()))):
                return tried, binary, spent_s
        anew = context.bench.pool.start(context, config).compiled()
        if isinstance(anew.binary, TrialFailure):
            return TrialReport(None, None, anew.binary, 0.0, None), binary, {}
        binary = anew.binary
    tried, spent_s = _tried(context, oracle, config, binary, incumbent_s, seed)
    return tried, binary, spent_s


def _tried(
    context: Context[P], oracle: Oracle, config: Config, binary: Binary, incumbent_s: float | None, seed: int
) -> tuple[TrialReport, dict[str, float]]:
    protocol = replace(context.protocol, incumbent_s=incumbent_s)
    times = [time.monotonic()]
    job = replace(oracle.job(config, binary), seed=seed)
    times.append(time.monotonic())
    with context.bench.turn:
        times.append(time.monotonic())
        tried = context.bench.worker.trial(job, protocol, context.deadline_s)
    waited = [end - begin for begin, end in pairwise(times)]
    spent_s = dict(zip(("making the reference", "waiting for the device"), waited, strict=True))
    return tried, {**spent_s, "verifying": tried.verify_s, "measuring": tried.measure_s or 0.0}


def _with_binary(trial: Trial, compiler: str, binary: Binary, geometry: Launch) -> Trial:
    """Returns ``trial`` with the figures of its binary; with several launches, the largest ones and those of each."""
    steps = geometry.steps
    own = next(step for step in steps if step.function in ("", binary.kernel))
    return replace(
        trial,
        compiler=compiler,
        code=binary.code,
        compile_s=binary.compile_s,
        registers=_largest(binary.of(step.function).registers for step in steps),
        spill_bytes=_largest(binary.of(step.function).spill_bytes for step in steps),
        shared_bytes=max((binary.of(step.function).shared_bytes or 0) + step.shared_bytes for step in steps),
        grid=own.grid,
        block=own.block,
        launches=tuple(_told(binary, step) for step in steps) if geometry.then is not None else (),
        workspace_bytes=geometry.workspace_bytes,
    )


def _told(binary: Binary, step: Launch) -> dict[str, object]:
    """Returns the figures of one of several launches, for a row."""
    figures = binary.of(step.function)
    return {
        "function": step.function,
        "grid": step.grid,
        "block": step.block,
        "registers": figures.registers,
        "spill_bytes": figures.spill_bytes,
        "shared_bytes": (figures.shared_bytes or 0) + step.shared_bytes,
    }


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _measured(trial: Trial, context: Context[P], oracle: Oracle, verdict: Verdict, found: Measurement) -> Trial:
    m = oracle.against_reference(found)
    return with_rates(
        replace(
            trial,
            **{name: value for name, value in asdict(m).items() if name not in ("max_error", "rms_error")},
            max_error=max(verdict.max_error, m.max_error),
            rms_error=max(verdict.rms_error, m.rms_error),
            n_samples=len(m.samples_s),
            checks=(*verdict.checks, TIMED_SIZE),
            rule=verdict.rule,
            seed=verdict.seed,
            stand_in=oracle.stand_in.number if oracle.stand_in else None,
            numpy_parts=oracle.numpy_parts,
        ),
        context,
    )
