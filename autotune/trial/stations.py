"""Takes one config through the stations: compiled, checked, verified, measured; a row whatever happens."""

import shlex
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import Device, Launch, problem_name
from ..core.errors import TrialFailure
from ..devices.base import Binary
from ..source.render import Variant, render
from .compile import Compiled
from .context import Context
from .measure import MEASURING, Measurement
from .oracle import Oracle
from .roofline import rates
from .row import Trial, digest
from .verify import Verdict
from .worker import Tried


def run(
    context: Context[Any], oracle: Oracle, number: int, compiled: Compiled, incumbent_s: float | None
) -> tuple[Trial, Oracle]:
    """Checks, verifies and measures what was compiled; returns the row, and the oracle of the next trial.

    Nothing that a variant does raises.

    Raises:
        UsageError: when the inputs and the reference of the timed problem cannot be made.
    """
    config, variant, binary = compiled.config, compiled.variant, compiled.binary
    trial = Trial(
        number=number,
        status="measured",
        config=config,
        key=variant.key if variant else None,
        stamp=stamp(context, config, variant),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        reproduce=_reproduce(context, config),
    )
    try:
        if isinstance(binary, TrialFailure):
            raise binary
        geometry = context.kernel.launch(context.problem, config)
        trial = _with_binary(trial, context.compiler, binary, geometry)
        check_limits(binary, geometry, context.target.device)
    except TrialFailure as failure:
        return replace(trial, status=failure.status, message=failure.message), oracle
    tried, binary = _on_device(context, oracle, config, binary, incumbent_s)
    told, failed = tried.verified, tried.failure
    trial = replace(
        trial, conditions=told.conditions if told else "", verify_s=tried.verify_s, measure_s=tried.measure_s
    )
    if failed is not None:
        return replace(trial, status=failed.status, message=failed.message), oracle
    assert told is not None and told.verdict is not None and tried.measurement is not None
    oracle = oracle.after(config, binary, told.verdict)
    return _measured(trial, context, oracle, told.verdict, tried.measurement), oracle


def stamp(context: Context[Any], config: Config, variant: Variant | None = None) -> str:
    """Returns a digest of what the outcome of ``config`` depends on: source, sizes, protocol, compiler and more."""
    try:
        text = (variant or render(context.kernel, context.problem, config)).source
    except TrialFailure as failure:
        text = failure.message
    measuring = f"measuring {MEASURING}"
    name, protocol = problem_name(context.problem), str(context.protocol)
    return digest(text, name, protocol, context.compiler, measuring, context.definition)


def check_limits(binary: Binary, launch: Launch, device: Device) -> None:
    """Refuses, with the figures, what the driver would refuse at the launch.

    Raises:
        TrialFailure: resources.
    """
    shared = launch.shared_bytes + (binary.shared_bytes or 0)
    registers = (binary.registers or 0) * launch.n_threads
    for what, value, limit in (
        ("threads in a block", launch.n_threads, device.max_threads_per_block),
        ("bytes of shared memory in a block", shared, device.max_shared_bytes),
        ("registers in a block", registers, device.registers_per_block),
        *((f"blockDim.{axis}", n, most) for axis, n, most in zip("xyz", launch.block, device.max_block, strict=True)),
        *((f"gridDim.{axis}", n, most) for axis, n, most in zip("xyz", launch.grid, device.max_grid, strict=True)),
    ):
        if value > limit:
            raise TrialFailure("resources", f"{value} {what}; {device.name} has {limit}")


def with_rates(trial: Trial, context: Context[Any]) -> Trial:
    """Returns ``trial`` with GB/s, TFLOP/s and efficiency of its median, which it must have."""
    assert trial.median_s is not None
    work = context.kernel.work(context.problem)
    return replace(trial, **asdict(rates(work, trial.median_s, context.bench.ceilings())))


def _on_device(
    context: Context[Any], oracle: Oracle, config: Config, binary: Binary, incumbent_s: float | None
) -> tuple[Tried, Binary]:
    """Verifies and measures; where the cache was deleted meanwhile, what it held is made anew."""
    try:
        tried = _tried(context, oracle, config, binary, incumbent_s)
        if tried.failure is None or _is_there(oracle, binary):
            return tried, binary
    except FileNotFoundError:
        if _is_there(oracle, binary):
            raise
    anew = context.bench.pool.start(context.kernel, context.problem, config, rank=context.rank).compiled()
    if isinstance(anew.binary, TrialFailure):
        return Tried(None, None, anew.binary, 0.0, None), binary
    return _tried(context, oracle, config, anew.binary, incumbent_s), anew.binary


def _tried(context: Context[Any], oracle: Oracle, config: Config, binary: Binary, incumbent_s: float | None) -> Tried:
    with context.ledger.on("making the reference"):
        job = oracle.job(config, binary)
    protocol = replace(context.protocol, incumbent_s=incumbent_s)
    with context.ledger.on("waiting for the device"):
        context.bench.turn.acquire()
    try:
        tried = context.bench.worker.trial(job, protocol, context.deadline_s)
    finally:
        context.bench.turn.release()
    context.ledger.add("verifying", tried.verify_s)
    context.ledger.add("measuring", tried.measure_s or 0.0)
    return tried


def _is_there(oracle: Oracle, binary: Binary) -> bool:
    return oracle.is_there and all(map(Path.exists, binary.files.values()))


def _with_binary(trial: Trial, compiler: str, binary: Binary, geometry: Launch) -> Trial:
    return replace(
        trial,
        compiler=compiler,
        code=binary.code,
        compile_s=binary.compile_s,
        registers=binary.registers,
        spill_bytes=binary.spill_bytes,
        shared_bytes=(binary.shared_bytes or 0) + geometry.shared_bytes,
        grid=geometry.grid,
        block=geometry.block,
    )


def _measured(trial: Trial, context: Context[Any], oracle: Oracle, verdict: Verdict, found: Measurement) -> Trial:
    m = oracle.against_reference(found)
    return with_rates(
        replace(
            trial,
            **{name: value for name, value in asdict(m).items() if name not in ("max_error", "rms_error")},
            max_error=max(verdict.max_error, m.max_error),
            rms_error=max(verdict.rms_error, m.rms_error),
            verified_on=(*verdict.verified_on, problem_name(context.problem) + str(oracle)),
        ),
        context,
    )


def _reproduce(context: Context[Any], config: Config) -> str:
    arguments = ["autotune", "verify", "--kernel", context.reference, "--problem", problem_name(context.problem)]
    return shlex.join([*arguments, "--config", str(config), "--device", context.target.identifier])
