"""The worker process of a device: it owns the hardware, and its death does not end the sweep.

The parent calls ``Worker.verify`` and ``Worker.measure`` with a deadline. A crash, a hang or an error that poisons
the context becomes a TrialFailure in the parent, and the next call gets a new process.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..core.config import Config
from ..core.definition import AnyKernel, Kernel, P
from ..core.errors import Status, TrialFailure, UsageError
from ..devices import Target, device_module
from ..devices.base import Binary, Session
from ..records.measurement import Measurement, Protocol, Sustained
from ..source.registry import load_kernel
from ..system.processes import Child, Died, keep_freed_memory
from .case import POISONS, Case, CaseInMemory, bytes_of, read_case
from .conditions import conditions_of
from .interleaved import interleaved
from .measure import check_carried, measure, release_all, repeated, sustained, timed_arguments
from .verify import Verdict, case_of_oracle, verify
from .winner import examined

RELEASE_S = 10.0
LARGE_BYTES = 1 << 26  # larger arrays are checked only when they are timed, which saves placing them once more
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """One compiled config and its problem, in types that can be sent to another process."""

    kernel: str  # the name or path that registry.load_kernel takes
    problem: dict[str, object]
    config: Config
    binary: Binary
    case: Path | None = None  # the folder of the timed problem's case, for a measurement
    oracle: tuple[Config, Binary] | None = None  # a verified config, if the problem is too large for NumPy
    seed: int = 0  # draws sizes and values
    others: Path | None = None  # the folder of other inputs of the timed problem, for the checked launches


@dataclass(frozen=True)
class VerifyReport:
    """The device's process sends it between verifying and measuring. ``verdict`` is None if the binary is wrong."""

    conditions: str  # digest of everything that the outcome depends on, except the machine code; "" if unknown
    verdict: Verdict | None


@dataclass(frozen=True)
class TrialReport:
    """The result of a trial. ``failure``: why there is no measurement. ``verify_s``, ``measure_s``: wall times."""

    verified: VerifyReport | None
    measurement: Measurement | None
    failure: TrialFailure | None
    verify_s: float
    measure_s: float | None  # None: it was not measured


class Worker:
    """One device's process, replaced whenever it fails. It serves one call at a time: threads take turns.

    ``tries``: number of processes that may die of one call. The first death may have other causes than the call.
    """

    def __init__(self, target: Target, tries: int = 2) -> None:
        self.target, self._tries = target, tries
        self._child = Child("autotune-device", _open, target.kind, target.identifier, tries=tries)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()

    def begin(self) -> None:
        """Starts the process, and does not wait until it has opened the device; the first call waits."""
        self._child.begin()

    def release(self) -> None:
        """Frees the memory that the process keeps between trials; a process that cannot do so is stopped."""
        try:
            self._child.call(_apply, (release_all,), RELEASE_S)
        except Exception:
            self._child.stop()

    def verify(
        self, job: Job, deadline_s: float, builds: tuple[str, ...] | None = None, *, full: bool = False
    ) -> Verdict:
        """Checks one binary at its edge sizes, and at the problem's own size if ``full``. Raises TrialFailure."""
        return self._call(_verify, (job, builds, full), deadline_s, "verification")

    def trial(self, job: Job, protocol: Protocol, deadline_s: float) -> TrialReport:
        """Verifies one binary and, if it is right, measures it, each within the deadline."""
        times, verified, measurement, failure = [time.monotonic()], None, None, None
        try:
            with self._failures(deadline_s, lambda: "measurement" if verified else "verification"):
                for step in self._child.steps(_trial, (job, protocol), deadline_s):
                    if isinstance(step, Measurement):
                        measurement = step
                    else:  # this happens a second time if the measurement killed the first process
                        times[1:], verified = [time.monotonic()], step
        except TrialFailure as its_own:
            failure = its_own
        times.append(time.monotonic())
        took = [round(end - begin, 4) for begin, end in pairwise(times)]
        return TrialReport(verified, measurement, failure, took[0], took[1] if verified and verified.verdict else None)

    def measure(self, job: Job, protocol: Protocol, deadline_s: float) -> Measurement:
        """Times one binary, and checks its outputs. Raises TrialFailure."""
        return self.measure_together([job], protocol, deadline_s)[0]

    def measure_together(
        self, jobs: list[Job], protocol: Protocol, deadline_s: float, n_placements: int = 1
    ) -> list[Measurement]:
        """Times several binaries of one problem, interleaved. Raises TrialFailure."""
        given = jobs, protocol, n_placements
        return self._call(_measure_together, given, deadline_s, "measurement") if jobs else []

    def sustain(self, job: Job, seconds: float, deadline_s: float) -> Sustained:
        """Launches one binary back to back for ``seconds``. Raises TrialFailure."""
        return self._call(_sustain, (job, seconds), deadline_s + 3 * seconds, "run of launches")

    def repeat(self, job: Job, n: int, deadline_s: float) -> int:
        """Launches one binary up to ``n`` times with checks; returns the number of launches. Raises TrialFailure."""
        return self._call(_repeat, (job, n), deadline_s, "run of checked launches")

    def examine(self, job: Job, deadline_s: float) -> tuple[str, ...]:
        """Makes the checks of a winner; returns the names of those that were made. Raises TrialFailure."""
        return self._call(_examine, (job,), deadline_s, "examination")

    def run(self, job: Job, inputs: Mapping[str, object], deadline_s: float) -> dict[str, Any]:
        """Launches once on ``inputs``; returns the outputs by name, as NumPy arrays. Raises TrialFailure."""
        return self._call(_run, (job, inputs), deadline_s, "launch")

    def written(self, job: Job, names: list[str], deadline_s: float) -> dict[str, np.ndarray]:
        """Launches once in the timed buffers; returns the arrays ``names``. Raises TrialFailure."""
        return self._call(_written, (job, names), deadline_s, "launch")

    def call(self, function: Callable[..., T], *arguments: object, deadline_s: float) -> T:
        """Runs ``function(session, *arguments)`` in the worker process; returns its result."""
        what = getattr(function, "__name__", "call").replace("_", " ")
        result: T = self._call(_apply, (function, *arguments), deadline_s, what)
        return result

    def _call(self, function: Callable[..., T], arguments: tuple[object, ...], deadline_s: float, what: str) -> T:
        with self._failures(deadline_s, lambda: what):
            return self._child.call(function, arguments, deadline_s)

    @contextmanager
    def _failures(self, deadline_s: float, doing: Callable[[], str]) -> Iterator[None]:
        """Turns a timeout or the death of the process into a TrialFailure; ``doing`` names the call."""
        try:
            yield
        except TimeoutError as error:
            raise TrialFailure(Status.TIMED_OUT, f"the {doing()} took longer than {deadline_s:g} s") from error
        except Died as death:
            why = f"the {doing()} killed its process{', and a second one' if self._tries > 1 else ''}: {death}"
            raise TrialFailure(Status.LAUNCH_FAILED, why) from death
        except (TrialFailure, UsageError, MemoryError, OSError):  # the last: a full disk, or a cache that was deleted
            raise
        except Exception as error:  # a device of another package may raise anything
            why = f"the {doing()} raises {type(error).__name__}: {error}"
            raise TrialFailure(Status.DEFINITION_FAILED, why) from error


# ---------------------------------------------------------------------- inside the worker process
_session: Session | None = None
_why_not = "it was not started by Worker"


def _open(kind: str, identifier: str) -> None:
    global _session, _why_not
    keep_freed_memory()
    try:
        _session = device_module(kind).open(identifier)
    except Exception as error:  # the first call reports it to the parent
        _why_not = f"{type(error).__name__}: {error}"


def _opened() -> Session:
    if _session is None:
        raise UsageError(f"the worker process could not open the device: {_why_not} (see `autotune doctor`)")
    return _session


def _apply(function: Callable[..., T], *arguments: object) -> T:
    return function(_opened(), *arguments)


def _restored(job: Job) -> tuple[Session, AnyKernel, Any]:
    session, kernel = _opened(), load_kernel(job.kernel)
    return session, kernel, kernel.problem(job.problem)


def _verify(job: Job, builds: tuple[str, ...] | None, full: bool) -> Verdict:
    return verify(*_restored(job), job.config, job.binary, builds, full, job.seed)


def _trial(job: Job, protocol: Protocol) -> Iterator[VerifyReport | Measurement]:
    session, kernel, problem = _restored(job)
    asked = replace(protocol, incumbent_s=None)
    try:
        verdict = _verdict(session, kernel, problem, job)
    except TrialFailure as failure:
        if not failure.sticky:
            with suppress(TrialFailure):
                yield VerifyReport(conditions_of(kernel, problem, job.config, asked), None)
        raise
    yield VerifyReport(conditions_of(kernel, problem, job.config, asked), verdict)
    yield measure(*_timed(job), job.config, job.binary, protocol)


def _verdict(session: Session, kernel: Kernel[P], problem: P, job: Job) -> Verdict:
    """Verifies at the edge sizes. If the only edge size is the timed one, and large, the check follows the timing."""
    only_timed = kernel.edge_problems(problem, job.config) == (problem,)
    is_one_build = tuple(session.check_builds) == (session.timed_build,)
    if only_timed and is_one_build and bytes_of(kernel.arrays(problem)) > LARGE_BYTES:
        return Verdict((), 0.0, 0.0)
    return verify(session, kernel, problem, job.config, job.binary, seed=job.seed)


def _measure_together(jobs: list[Job], protocol: Protocol, n_placements: int) -> list[Measurement]:
    session, kernel, case = _timed(jobs[0])
    contestants = [(job.config, job.binary) for job in jobs]
    if len(contestants) == 1:
        return [measure(session, kernel, case, *contestants[0], protocol)]
    return interleaved(session, kernel, case, contestants, protocol, n_placements)


def _sustain(job: Job, seconds: float) -> Sustained:
    return sustained(*_timed(job), job.config, job.binary, seconds)


def _examine(job: Job) -> tuple[str, ...]:
    return examined(*_restored(job), job.config, job.binary, job.seed)


def _repeat(job: Job, n: int) -> int:
    session, kernel, case = _timed(job)
    made = repeated(session, kernel, case, job.config, job.binary, n)
    if job.others is not None and made:
        inputs = read_case(kernel, case.problem, job.others).inputs
        check_carried(session, kernel, case, inputs, job.config, job.binary)
    return made


def _timed(job: Job) -> tuple[Session, AnyKernel, Case]:
    session, kernel, problem = _restored(job)
    assert job.case is not None
    case, own = read_case(kernel, problem, job.case), (job.config, job.binary)
    if job.oracle is None:
        return session, kernel, case
    with suppress(TrialFailure):  # NumPy refutes a recorded oracle: then a config is compared with its own output
        if job.oracle != own:
            return session, kernel, case_of_oracle(session, kernel, case, *job.oracle)
    return session, kernel, case_of_oracle(session, kernel, case, *own)


def _written(job: Job, names: list[str]) -> dict[str, np.ndarray]:
    """Returns arrays of the timed problem after one more launch from their initial contents."""
    session, kernel, case = _timed(job)
    placed = timed_arguments(session, kernel, case)
    placed.poison(POISONS[0])
    placed.launch(session.load(job.binary, session.timed_build), kernel.launch(case.problem, job.config))
    return {name: placed.buffers[name].read() for name in names}


def _run(job: Job, inputs: Mapping[str, object]) -> dict[str, Any]:
    session, kernel, problem = _restored(job)
    function = session.load(job.binary, session.timed_build)
    with CaseInMemory(session, kernel, problem, inputs) as placed:
        placed.launch(function, kernel.launch(problem, job.config))
        return placed.outputs()
