"""Takes one config through the stations: compiled, checked, verified, measured; a row whatever happens."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.definition import problem_name
from ..core.errors import TrialFailure
from ..devices.base import Binary
from .compile import Proposal, check_limits
from .context import Context
from .measure import Measurement
from .oracle import Oracle
from .roofline import rates
from .row import Trial
from .verify import Verdict
from .worker import Tried


def run(
    context: Context[Any], oracle: Oracle, number: int, proposal: Proposal, incumbent_s: float | None
) -> tuple[Trial, Oracle]:
    """Waits for the compile, verifies and measures; returns the row and the oracle of the next trial.

    Nothing that a variant does raises.

    Raises:
        UsageError: when the inputs and the reference of the timed problem cannot be made.
    """
    config = proposal.config
    trial = Trial(
        number=number,
        status="measured",
        config=config,
        key=proposal.variant.key if proposal.variant else None,
        stamp=context.stamp(config, proposal),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        reproduce=context.reproduce(config),
    )
    try:
        with context.ledger.on("waiting for compilers"):
            binary = proposal.binary()
        geometry = context.kernel.launch(context.problem, config)
        trial = replace(
            trial,
            compiler=context.compiler,
            code=binary.code,
            compile_s=binary.compile_s,
            registers=binary.registers,
            spill_bytes=binary.spill_bytes,
            shared_bytes=(binary.shared_bytes or 0) + geometry.shared_bytes,
            grid=geometry.grid,
            block=geometry.block,
        )
        check_limits(binary, geometry, context.target.device)
    except TrialFailure as failure:
        return replace(trial, status=failure.status, message=failure.message), oracle
    tried, binary = _on_device(context, oracle, proposal, binary, incumbent_s)
    told = tried.verified
    trial = replace(trial, verify_s=tried.verify_s, measure_s=tried.measure_s)
    trial = replace(trial, conditions=told.conditions if told else "")
    if tried.failure is not None:
        return replace(trial, status=tried.failure.status, message=tried.failure.message), oracle
    assert told is not None and told.verdict is not None and tried.measurement is not None
    oracle = oracle.after(config, binary, told.verdict)
    return _measured(trial, context, oracle, told.verdict, tried.measurement), oracle


def with_rates(trial: Trial, context: Context[Any]) -> Trial:
    """Returns ``trial`` with GB/s, TFLOP/s and efficiency of its median, which it must have."""
    assert trial.median_s is not None
    work = context.kernel.work(context.problem)
    return replace(trial, **asdict(rates(work, trial.median_s, context.bench.ceilings())))


def _on_device(
    context: Context[Any], oracle: Oracle, proposal: Proposal, binary: Binary, incumbent_s: float | None
) -> tuple[Tried, Binary]:
    """Verifies and measures; where the cache was deleted meanwhile, what it held is made anew."""
    try:
        tried = _tried(context, oracle, proposal, binary, incumbent_s)
        if tried.failure is None or _is_there(oracle, binary):
            return tried, binary
    except FileNotFoundError:
        if _is_there(oracle, binary):
            raise
    try:
        binary = context.start(proposal.config).binary()
    except TrialFailure as failure:
        return Tried(None, None, failure, 0.0, None), binary
    return _tried(context, oracle, proposal, binary, incumbent_s), binary


def _tried(
    context: Context[Any], oracle: Oracle, proposal: Proposal, binary: Binary, incumbent_s: float | None
) -> Tried:
    with context.ledger.on("making the reference"):
        job = oracle.job(proposal.config, binary)
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
