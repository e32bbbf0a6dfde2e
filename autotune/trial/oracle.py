"""The correct outputs at the timed size: those of the NumPy reference, or of a verified config.

NumPy computes them unless it would need minutes. Then a config stands in for it: the first one that passes at the edge
sizes, or the fastest recorded one. The stand-in itself may be off by the tolerance, so its own errors are added to the
errors against it.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import P, problem_name
from ..core.errors import TrialFailure, UsageError
from ..devices.base import Binary
from ..records.measurement import Measurement
from ..records.trial import Trial
from ..system.processes import Died
from .case import read_parts, too_large_for_numpy
from .compile import PREPARE_DEADLINE_S
from .context import Context
from .verify import Verdict
from .worker import Job


@dataclass(frozen=True)
class PendingCase:
    """The inputs and the reference of the timed problem, while another process makes them."""

    future: "Future[None]"
    name: str  # name of the problem

    def result(self) -> None:
        """Waits for inputs and reference.

        Raises:
            UsageError: if they cannot be made; then no config can be measured.
        """
        smaller = "choose a smaller problem"
        try:
            self.future.result()
        except TimeoutError as error:
            why = f"took longer than {PREPARE_DEADLINE_S:g} s"
            raise UsageError(f"the inputs and the reference of {self.name} {why}; {smaller}") from error
        except MemoryError as error:
            raise UsageError(f"the inputs and the reference of {self.name} need more memory; {smaller}") from error
        except Died as death:
            why = f"killed the process that made them, and a second one: {death}"
            raise UsageError(
                f"the inputs and the reference of {self.name} {why}. If memory ran out, {smaller}"
            ) from death


@dataclass(frozen=True)
class StandIn:
    """A verified config whose output at the timed size replaces the reference, with its own largest errors."""

    number: int  # its trial has it
    config: Config
    binary: Binary
    max_error: float
    rms_error: float


@dataclass(frozen=True)
class Oracle:
    """The timed problem's inputs, in ``folder``, and the source of their correct outputs.

    ``is_open``: there is no source yet, neither NumPy nor a stand-in. Then a config is compared with its own output,
    and becomes the stand-in once it has passed.
    """

    context: Context[Any]
    folder: Path
    pending: PendingCase  # the inputs, and the reference if NumPy computes it
    stand_in: StandIn | None
    is_open: bool

    def job(self, config: Config, binary: Binary) -> Job:
        """Returns the job to measure a config in the device's process; waits for the inputs and the reference.

        Raises:
            UsageError: if they cannot be made.
        """
        self.pending.result()
        if not self.is_there:  # the cache was deleted meanwhile
            _prepare(self.context, self.folder, self.stand_in is None).result()
        own = (config, binary) if self.is_open else None
        oracle = (self.stand_in.config, self._binary(self.stand_in)) if self.stand_in else own
        return replace(_job(self.context, config, binary), case=self.folder, oracle=oracle)

    def _binary(self, stand_in: StandIn) -> Binary:
        """Returns the stand-in's binary; it is compiled again if the cache was deleted meanwhile."""
        if all(path.exists() for path in stand_in.binary.files.values()):
            return stand_in.binary
        made = self.context.bench.pool.start(self.context, stand_in.config).compiled().binary
        return stand_in.binary if isinstance(made, TrialFailure) else made

    def others(self) -> PendingCase:
        """Returns other inputs of the timed problem, which a compile process makes in ``others_folder``."""
        context = self.context
        given = context.reference, context.fields, self.others_folder, False, context.rank, 1
        return PendingCase(context.bench.pool.prepare(*given), f"{context.reference} {problem_name(context.problem)}")

    @property
    def others_folder(self) -> Path:
        return self.folder / "others"

    @property
    def is_there(self) -> bool:
        """Returns whether the files that ``job`` names are still there."""
        return self.folder.exists()

    def after(self, number: int, config: Config, binary: Binary, verdict: Verdict) -> "Oracle":
        """Returns the oracle after a trial has passed: if the oracle is open, its config becomes the stand-in."""
        if not self.is_open:
            return self
        stand_in = StandIn(number, config, binary, verdict.max_error, verdict.rms_error)
        return replace(self, is_open=False, stand_in=stand_in)

    def against_reference(self, measurement: Measurement) -> Measurement:
        """Returns error bounds against the reference: the errors against the stand-in plus its own errors."""
        if self.stand_in is None:
            return measurement
        max_error = measurement.max_error + self.stand_in.max_error
        return replace(measurement, max_error=max_error, rms_error=measurement.rms_error + self.stand_in.rms_error)

    @property
    def numpy_parts(self) -> str:
        """Returns the parts of the timed outputs that NumPy computed, where it would need minutes for all; else ""."""
        if self.stand_in is None or not too_large_for_numpy(self.context.kernel, self.context.problem):
            return ""
        return ", ".join(map(str, read_parts(self.folder))) or "smaller sizes only"


@contextmanager
def oracle_of(context: Context[P], fastest: Trial | None, trust_recorded: bool = False) -> Iterator[Oracle]:
    """Yields the oracle of a sweep; a compile process makes the inputs and the reference meanwhile.

    ``fastest``: the fastest recorded trial. It is the stand-in if NumPy would need minutes, or with ``trust_recorded``,
    provided that it compiles and verifies again.
    """
    too_large = too_large_for_numpy(context.kernel, context.problem)
    stand_in = _verified(context, fastest) if fastest is not None and (too_large or trust_recorded) else None
    folder = context.bench.folder(context.rank)
    pending = _prepare(context, folder, stand_in is None)
    try:
        yield Oracle(context, folder, pending, stand_in, is_open=too_large and stand_in is None)
    finally:
        pending.future.cancel()
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(context: Context[P], folder: Path, with_reference: bool) -> PendingCase:
    future = context.bench.pool.prepare(context.reference, context.fields, folder, with_reference, context.rank)
    return PendingCase(future, f"{context.reference} {problem_name(context.problem)}")


def _job(context: Context[P], config: Config, binary: Binary) -> Job:
    return Job(context.reference, context.fields, config, binary)


def _verified(context: Context[P], trial: Trial) -> StandIn | None:
    """Returns a recorded trial as a stand-in if it compiles and verifies again, else None."""
    try:
        binary = context.bench.pool.start(context, trial.config).binary()
        with context.on_device("verifying"):
            context.bench.worker.verify(_job(context, trial.config, binary), context.deadline_s)
    except TrialFailure:
        return None
    return StandIn(trial.number, trial.config, binary, trial.max_error or 0.0, trial.rms_error or 0.0)
