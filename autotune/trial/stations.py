"""Takes one config through the stations: rendered, compiled, checked, verified, measured; a row whatever happens."""

import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import Kernel, problem_name
from ..core.errors import DefinitionError, TrialFailure
from ..devices.base import Binary, Ceilings
from ..source.registry import reference_of
from ..source.render import Variant, render
from .bench import Bench
from .case import too_large_for_numpy
from .compile import Pending, PendingCase, check_limits
from .conditions import conditions_of
from .ledger import Ledger
from .measure import MEASURING, Measurement, Protocol
from .roofline import rates
from .row import Trial, stamp
from .verify import Verdict
from .worker import Job

N_PROBED = 8  # configs, spread over the space, that a definition is tried with before a sweep begins


@dataclass(frozen=True)
class Started:
    """A config on its way: what it rendered to, or why it did not, and its compile if there is one."""

    config: Config
    variant: Variant | None
    outcome: Pending[Binary] | TrialFailure

    @property
    def done(self) -> bool:
        return isinstance(self.outcome, TrialFailure) or self.outcome.future.done()

    def cancel(self) -> None:
        """Cancel the compile, since nothing waits for it any more."""
        if not isinstance(self.outcome, TrialFailure):
            self.outcome.future.cancel()


@dataclass(frozen=True)
class StandIn:
    """A verified config whose output at the timed size is taken for the reference, and its own largest errors."""

    config: Config
    binary: Binary
    max_error: float
    rms_error: float


class Stations:
    """The stations and shared state of one sweep. ``rank`` is the rank of its compiles; None takes a new one."""

    def __init__(
        self,
        kernel: Kernel[Any],
        problem: Any,
        bench: Bench,
        protocol: Protocol,
        deadline_s: float,
        ledger: Ledger,
        rank: int | None = None,
    ) -> None:
        self.kernel, self.problem, self.target, self.bench = kernel, problem, bench.target, bench
        self.protocol, self.deadline_s, self.ledger = protocol, deadline_s, ledger
        self.ceilings: Ceilings | None = None
        self._rank = bench.join() if rank is None else rank
        self._case: tuple[Path, PendingCase] | None = None
        self._stand_in: StandIn | None = None
        compiler = self.target.module.compiler(self.target.device)
        definition = "".join(path.read_text() for path in kernel.source_paths)
        self.compiler = compiler
        self._fixed_stamp = (compiler, f"measuring {MEASURING}", definition)

    def check_definition(self, configs: Sequence[Config]) -> None:
        """Ask the definition for what every trial needs, before any begins.

        Raises:
            DefinitionError: for a method that breaks its contract, also where no config is to blame since all of some
                that differ fail alike.
        """
        self.kernel.arrays(self.problem), self.kernel.work(self.problem), self.kernel.tolerance(self.problem)
        failures = []
        for config in configs[:: max(1, len(configs) // N_PROBED)]:
            try:
                self.kernel.launch(self.problem, config)
                self.kernel.constants(self.problem, config)
            except TrialFailure as failure:
                failures.append(failure.message)
            else:
                return
        raise DefinitionError(failures[0])

    def prepare(self) -> None:
        """Let a compile process make the timed problem's inputs and reference."""
        name, folder = reference_of(self.kernel), self.bench.folder(self._rank)
        pending = self.bench.pool.prepare(name, asdict(self.problem), folder, self._stand_in is None, self._rank)
        self._case = (folder, pending)

    def let_stand_in(self, trial: Trial) -> None:
        """Spare the reference: the output of ``trial``, verified at the timed size when it was recorded, stands in.

        A config that does not compile and verify again does not.
        """
        try:
            binary = self.binary(self.start(trial.config))
            with self.on_device("verifying"):
                self.bench.worker.verify(self._job(trial.config, binary), self.deadline_s)
        except TrialFailure:
            return
        self._stand_in = StandIn(trial.config, binary, trial.max_error or 0.0, trial.rms_error or 0.0)

    def close(self) -> None:
        """Delete what ``prepare`` made."""
        if self._case is not None:
            self._case[1].future.cancel()
            shutil.rmtree(self._case[0], ignore_errors=True)

    def start(self, config: Config) -> Started:
        """Render, and let the compile processes begin."""
        try:
            if reason := self.kernel.unsupported(config, self.target.device):
                return Started(config, None, TrialFailure("skipped", reason))
            variant = render(self.kernel, self.problem, config)
        except TrialFailure as failure:
            return Started(config, None, failure)
        return Started(config, variant, self.bench.pool.submit(variant, rank=self._rank))

    def finish(self, number: int, started: Started, incumbent_s: float | None) -> Trial:
        """Wait for the compile, verify and measure. Nothing that a variant does raises."""
        config = started.config
        trial = Trial(
            number=number,
            status="measured",
            config=config,
            key=started.variant.key if started.variant else None,
            stamp=self.stamp(config, started.variant),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            reproduce=self._reproduce(config),
        )
        took: dict[str, Any] = {}
        try:
            with self.ledger.on("waiting for compilers"):
                binary = self.binary(started)
            geometry = self.kernel.launch(self.problem, config)
            trial = replace(
                trial,
                compiler=self.compiler,
                code=binary.code,
                compile_s=binary.compile_s,
                registers=binary.registers,
                spill_bytes=binary.spill_bytes,
                shared_bytes=(binary.shared_bytes or 0) + geometry.shared_bytes,
                grid=geometry.grid,
                block=geometry.block,
            )
            check_limits(binary, geometry, self.target.device)
            verdict, measurement = self._on_device(config, binary, incumbent_s, took)
            trial = self._measured(replace(trial, **took), measurement, verdict)
            return self.with_rates(trial, measurement.median_s)
        except TrialFailure as failure:
            return replace(trial, status=failure.status, message=failure.message, **took)

    def binary(self, started: Started) -> Binary:
        """Wait for the compile. Raises TrialFailure."""
        if isinstance(started.outcome, TrialFailure):
            raise started.outcome
        return started.outcome.result()

    def job(self, config: Config, binary: Binary) -> Job:
        """Returns what the worker process needs to measure; waits for the case of the timed problem."""
        if self._case is None or (self._case[1].future.done() and not self._case[0].exists()):
            self.prepare()
        assert self._case is not None
        folder, pending = self._case
        pending.result()
        oracle = (self._stand_in.config, self._stand_in.binary) if self._stand_in else None
        return replace(self._job(config, binary), case=folder, oracle=oracle)

    def against_reference(self, measurement: Measurement) -> Measurement:
        """Returns error bounds against the reference: those against a stand-in plus the stand-in's own."""
        if self._stand_in is None:
            return measurement
        max_error = measurement.max_error + self._stand_in.max_error
        return replace(measurement, max_error=max_error, rms_error=measurement.rms_error + self._stand_in.rms_error)

    @contextmanager
    def on_device(self, doing: str) -> Iterator[None]:
        """Hold the device exclusively, and account for the time."""
        with self.ledger.on("waiting for the device"):
            self.bench.turn.acquire()
        try:
            with self.ledger.on(doing):
                yield
        finally:
            self.bench.turn.release()

    def stamp(self, config: Config, variant: Variant | None = None) -> str:
        """Returns a digest of what the outcome of ``config`` depends on: source, sizes, protocol, compiler and more."""
        try:
            text = (variant or render(self.kernel, self.problem, config)).source
        except TrialFailure as failure:
            text = failure.message
        return stamp(text, problem_name(self.problem), str(self.protocol), *self._fixed_stamp)

    def conditions(self, config: Config) -> str:
        """Returns a digest of what the outcome of ``config`` depends on besides its machine code.

        Raises:
            TrialFailure: definition_failed.
        """
        return conditions_of(self.kernel, self.problem, config, self.protocol)

    def with_rates(self, trial: Trial, median_s: float) -> Trial:
        """Returns ``trial`` with GB/s, TFLOP/s and efficiency of that median."""
        return replace(trial, **asdict(rates(self.kernel.work(self.problem), median_s, self.ceilings)))

    def _on_device(
        self, config: Config, binary: Binary, incumbent_s: float | None, took: dict[str, Any]
    ) -> tuple[Verdict, Measurement]:
        """Verifies and measures; ``took`` gets the seconds of each stage, also of one that fails.

        Where the cache was deleted meanwhile, what it held is made anew.
        """
        try:
            return self._verified_and_measured(config, binary, incumbent_s, took)
        except (TrialFailure, FileNotFoundError):
            if all(map(Path.exists, (*binary.files.values(), *(self._case or ())[:1]))):
                raise
        return self._verified_and_measured(config, self.binary(self.start(config)), incumbent_s, took)

    def _verified_and_measured(
        self, config: Config, binary: Binary, incumbent_s: float | None, took: dict[str, Any]
    ) -> tuple[Verdict, Measurement]:
        with self.on_device("verifying"), _timed(took, "verify_s"):
            verdict = self.bench.worker.verify(self._job(config, binary), self.deadline_s)
        if self._stand_in is None and too_large_for_numpy(self.kernel, self.problem):
            self._stand_in = StandIn(config, binary, verdict.max_error, verdict.rms_error)
        with self.ledger.on("making the reference"):
            job = self.job(config, binary)
        protocol = replace(self.protocol, incumbent_s=incumbent_s)
        with self.on_device("measuring"), _timed(took, "measure_s"):
            measurement = self.bench.worker.measure(job, protocol, self.deadline_s)
        return verdict, self.against_reference(measurement)

    def _job(self, config: Config, binary: Binary) -> Job:
        return Job(reference_of(self.kernel), asdict(self.problem), config, binary)

    def _measured(self, trial: Trial, m: Measurement, verdict: Verdict) -> Trial:
        stood_in = f" (against {self._stand_in.config})" if self._stand_in else ""
        return replace(
            trial,
            # Asked only now: what verification has asked a definition in a process of its own kills this one no more.
            conditions=self.conditions(trial.config),
            **{name: value for name, value in asdict(m).items() if name not in ("max_error", "rms_error")},
            max_error=max(verdict.max_error, m.max_error),
            rms_error=max(verdict.rms_error, m.rms_error),
            verified_on=(*verdict.verified_on, problem_name(self.problem) + stood_in),
        )

    def _reproduce(self, config: Config) -> str:
        arguments = ["autotune", "verify", "--kernel", reference_of(self.kernel)]
        arguments += ["--problem", problem_name(self.problem), "--config", str(config)]
        return shlex.join([*arguments, "--device", self.target.identifier])


@contextmanager
def _timed(took: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        took[name] = round(time.monotonic() - began, 4)
