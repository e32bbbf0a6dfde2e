"""A contest of a few compiled candidates on the device: each is checked, those that agree are timed, the fastest wins.

It takes its time from a clock that runs while candidates run, so compiles, starts of processes and NumPy's references
are not counted. Whatever a candidate does costs this candidate, and at most a quarter of the time that is left.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ..core.config import Config
from ..core.definition import AnyKernel, problem_name
from ..core.errors import Status, TrialFailure, UsageError, clipped, one_line
from ..devices.base import Session
from ..records import measurement
from ..records.measurement import Measurement
from ..records.trial import Trial
from ..runtime.tuned_here import NOT_TRIED
from ..source.registry import load_kernel
from ..sweep.final_round import Contestant, rank
from ..trial.case import (
    Case,
    CaseInMemory,
    bytes_of,
    check_reference_repeats,
    read_case,
    small_case,
    too_large_for_numpy,
)
from ..trial.measure import measure
from ..trial.verify import case_of_oracle, verify
from ..trial.worker import Job

START_S = 30.0  # deadline of the device's process to be ready after its start
REFERENCES_BYTES = 64 << 20  # arrays of a candidate's edge sizes, for which NumPy takes about a second
REFERENCES_S = 3.0  # seconds, after which no further candidate's references are begun
STEP = 0.25  # share of the remaining time that a step may take; also the share of all time that is kept for timing
MOST_RESTARTS = 2  # starts of another device process after faults
LEAST_SAMPLES, MOST_SAMPLES = 5, 40
SHARE_TIMED = 0.7  # share of the remaining time that is planned for samples
LEAST_S = 0.05  # shortest deadline of a step
OVERHEAD_S = 0.0005  # time of one sample beside its launch: a flush of the caches, events
FAULTS = (Status.TIMED_OUT, Status.LAUNCH_FAILED)  # the process is dead, or its context may be
PASSING = (Status.TIMED_OUT, Status.NOISY)  # another attempt may end in another way
MOST_TOLD = 300  # characters of a reason
NOT_READY = "NumPy takes too long for the references of its edge sizes (a sweep waits)"
ONCE = measurement.Protocol(n_warmup=1, n_samples=1)


class DeviceProcess(Protocol):
    """The part of ``trial.worker.Worker`` that a contest needs."""

    def measure_together(
        self, jobs: list[Job], protocol: measurement.Protocol, deadline_s: float
    ) -> list[Measurement]: ...
    def call(self, function: Callable[..., Any], *arguments: object, deadline_s: float) -> Any: ...


@dataclass(frozen=True)
class Entrant:
    """A candidate. ``job``: how to run it, or why it cannot run. ``registers``, ``shared_bytes``: its resources."""

    config: Config
    job: Job | TrialFailure
    registers: int | None = None
    shared_bytes: int | None = None


@dataclass
class EntrantEnd:
    """The end of an entrant: a Status, or NOT_TRIED. Only those that were timed have a ``measurement``."""

    status: str = NOT_TRIED
    message: str = "no time was left"
    measurement: Measurement | None = None
    checked: tuple[str, ...] = ()

    def fails(self, failure: TrialFailure) -> None:
        self.status, self.message = failure.status, one_line(failure.message)


@dataclass
class Contest:
    """One contest; ``run`` fills ``ends``.

    Args:
        reference, fields: the kernel and the problem, as another process finds them.
        builds: the builds that are verified.
        has_reference: whether NumPy computed the outputs at the problem's own sizes. Otherwise the entrants are
            compared with each other there, and only those in a group of more than half of them are right.
        seconds: how long the device's process may work.
        makes_references: whether the device's process makes the references of edge sizes before the checks; not if it
            has died of them.
    """

    kernel: AnyKernel
    problem: Any
    reference: str
    fields: Mapping[str, object]
    default: Config
    entrants: Sequence[Entrant]
    device: DeviceProcess
    builds: tuple[str, ...]
    has_reference: bool
    seconds: float
    clock: Callable[[], float] = time.monotonic
    makes_references: bool = True
    ends: list[EntrantEnd] = field(default_factory=list)
    winner: int | None = None
    why: str = ""  # the reason if nothing was chosen
    _spent_s: float = 0.0
    _n_restarts: int = 0
    _ready: frozenset[int] = frozenset()  # entrants whose references of edge sizes are made
    _unready: set[int] = field(default_factory=set)  # entrants that were not tried, since theirs take too long
    _groups: list[list[int]] = field(default_factory=list)  # entrants that agree with the first one of their group
    _one_launch_s: dict[int, float] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        """Returns the seconds for which the device's process may still work."""
        return max(0.0, self.seconds - self._spent_s)

    @property
    def is_final(self) -> bool:
        """Returns whether another contest would probably end like this one: NumPy will not be faster."""
        statuses = {end.status for number, end in enumerate(self.ends) if number not in self._unready}
        return self.winner is not None or not statuses.intersection((*PASSING, NOT_TRIED, Status.MEASURED))

    def run(self) -> None:
        self.ends = [EntrantEnd() for _ in self.entrants]
        if not self.is_ready():
            return
        for number, entrant in enumerate(self.entrants):
            if isinstance(entrant.job, TrialFailure):
                self.ends[number].fails(entrant.job)
            elif number not in self._ready:
                self.ends[number].message = NOT_READY
                self._unready.add(number)
            elif self.left_s > STEP * self.seconds and self._n_restarts <= MOST_RESTARTS:
                self._check(number, entrant.job)
        if right := self._right():
            self._time(right)

    # ------------------------------------------------------------------ checks
    def _check(self, number: int, job: Job) -> None:
        end = self.ends[number]
        try:
            with self._working() as deadline_s:
                edges = self.device.call(verification, job, self.builds, deadline_s=deadline_s)
            place = self._compared(number, job)
        except TrialFailure as failure:
            end.fails(failure)
            if failure.sticky or failure.status in FAULTS:
                self._n_restarts += 1
                if self._n_restarts <= MOST_RESTARTS and not self.is_ready():
                    self._n_restarts = MOST_RESTARTS + 1
            return
        end.status, end.message, end.checked = Status.MEASURED, "", (*edges, place)

    def _compared(self, number: int, job: Job) -> str:
        """Launches at the problem's own sizes, and finds the group that gives the same outputs."""
        name = problem_name(self.problem)
        if self.has_reference:
            self._launched(number, job)
            self._groups = [[*(self._groups[0] if self._groups else ()), number]]
            return f"{name} (against NumPy)"
        for group in self._groups:
            try:
                self._launched(number, _against(job, self._job(group[0])))
            except TrialFailure as failure:
                if failure.status != Status.WRONG:
                    raise
            else:
                group.append(number)
                break
        else:
            self._launched(number, _against(job, job))
            self._groups.append([number])
        return f"{name} (against each other)"

    def _launched(self, number: int, job: Job) -> None:
        with self._working() as deadline_s:
            self._one_launch_s[number] = self.device.call(comparison_at_full_size, job, deadline_s=deadline_s)

    def _right(self) -> list[int]:
        """Returns the entrants of the group that more than half of those that ran belong to."""
        n = sum(map(len, self._groups))
        most = max(self._groups, key=len, default=[])
        if 2 * len(most) <= n:
            if n:
                self.why = f"the outputs of {n} configs differ at these sizes, and no more than half of them agree"
            else:
                failed = next((end for end in self.ends if end.status != NOT_TRIED), self.ends[0])
                self.why = clipped(f"no config passed, the first ended as {failed.status}: {failed.message}", MOST_TOLD)
            for each in (number for group in self._groups for number in group):
                self.ends[each].fails(TrialFailure(Status.WRONG, self.why))
            return []
        for number in (number for group in self._groups if group is not most for number in group):
            others = TrialFailure(Status.WRONG, f"at these sizes its outputs differ from those of {len(most)} others")
            self.ends[number].fails(others)
        return most

    # ------------------------------------------------------------------ times
    def _time(self, right: list[int]) -> None:
        first = self._job(right[0])
        jobs = [self._job(number) if self.has_reference else _against(self._job(number), first) for number in right]
        round_s = sum(self._one_launch_s[number] + OVERHEAD_S for number in right)
        timed = self._timed(jobs, round_s)
        if not timed:
            return
        contestants = []
        for number, found in zip(right, timed, strict=True):
            self.ends[number].measurement, entrant = found, self.entrants[number]
            trial = Trial(
                number=number,
                status=Status.MEASURED,
                config=entrant.config,
                key=None,
                stamp="",
                registers=entrant.registers,
                shared_bytes=entrant.shared_bytes,
                median_s=found.median_s,
            )
            contestants.append(Contestant(trial, found))
        self.winner = rank(contestants, self.default)[0].number

    def _timed(self, jobs: list[Job], round_s: float) -> list[Measurement]:
        """Times the jobs briefly, then again with the samples that the rest of the time allows, and returns the latter.

        If only the second measurement takes too long, the first one counts. Without any, ``why`` says more.
        """
        timed: list[Measurement] = []
        for most in (LEAST_SAMPLES, MOST_SAMPLES):
            n = min(most, int(SHARE_TIMED * self.left_s / round_s))
            if n < LEAST_SAMPLES:
                break
            try:
                with self._working(whole=True) as deadline_s:
                    protocol = measurement.Protocol(n_warmup=1, n_samples=n)
                    timed = self.device.measure_together(jobs, protocol, deadline_s)
            except TrialFailure as failure:
                if timed and failure.status == Status.TIMED_OUT:
                    break
                self.why = f"the timing failed: {one_line(str(failure))}"
                return []
        if not timed:
            self.why = f"{LEAST_SAMPLES} launches of each of {len(jobs)} configs take longer than was left"
        return timed

    # ------------------------------------------------------------------ the device's process
    def is_ready(self) -> bool:
        """Waits, outside of the contest's time, until the device's process has made references of edge sizes.

        If it dies of them, it goes on without, and each entrant's check makes its own.
        """
        everyone = [entrant.config for entrant in self.entrants]
        for configs in (everyone, []) if self.makes_references else ([],):
            try:
                asked = self.reference, self.fields, configs, REFERENCES_S
                ready = self.device.call(get_ready, *asked, deadline_s=START_S)
                self._ready = frozenset(ready if configs else range(len(everyone)))
                self.why = ""
                return True
            except (TrialFailure, UsageError) as error:
                self.why, self.makes_references = one_line(str(error)), False
        return False

    @contextmanager
    def _working(self, whole: bool = False) -> Iterator[float]:
        """Counts the time of a step on the device. Yields its deadline: STEP of the time left, or the ``whole``."""
        began = self.clock()
        try:
            yield max(LEAST_S, self.left_s if whole else STEP * self.left_s)
        finally:
            self._spent_s += self.clock() - began

    def _job(self, number: int) -> Job:
        job = self.entrants[number].job
        assert isinstance(job, Job)
        return job


def _against(job: Job, other: Job) -> Job:
    """Returns ``job`` with the outputs of ``other`` as its reference at the problem's own sizes."""
    return replace(job, oracle=(other.config, other.binary))


def get_ready(
    session: Session, reference: str, fields: Mapping[str, object], configs: Sequence[Config], seconds: float
) -> tuple[int, ...]:
    """Makes what NumPy has to make for the verification of these configs, in the device's process.

    Returns the numbers of the configs that are ready: not those whose edge sizes need more than REFERENCES_BYTES, as
    where rows are long, nor those that would be begun after ``seconds``.

    It also compares once: the device then has the code that compares, which may have to be compiled.
    """
    kernel = load_kernel(reference)
    problem = kernel.problem(fields)
    end = time.monotonic() + seconds
    cases: dict[Any, Case] = {}  # case of each edge size
    ready = []
    for number, config in enumerate(configs):
        with suppress(TrialFailure):  # its own check says so
            edges = sorted(_edges(kernel, problem, config), key=lambda edge: bytes_of(kernel.arrays(edge)))
            if sum(bytes_of(kernel.arrays(edge)) for edge in edges) > REFERENCES_BYTES:
                continue
            if not cases.keys() >= set(edges) and time.monotonic() > end:
                continue
            cases |= {edge: small_case(kernel, edge) for edge in edges}
            for largest in edges[-1:]:
                small_case(kernel, largest, 1)
                check_reference_repeats(kernel, problem, edges[0])
        ready.append(number)
    for case in list(cases.values())[:1]:
        with suppress(TrialFailure), CaseInMemory(session, kernel, case.problem, case.inputs) as placed:
            for name, answer in case.reference.items():
                placed.buffers[name].write(np.asarray(answer).astype(placed.specs[name].dtype))
            placed.check(case)
            placed.hold_another()
    return tuple(ready)


def verification(session: Session, job: Job, builds: tuple[str, ...]) -> tuple[str, ...]:
    """Verifies a candidate at small sizes, in the device's process; returns the names of the problems."""
    kernel = load_kernel(job.kernel)
    problem = kernel.problem(job.problem)
    if not _edges(kernel, problem, job.config):
        return ()
    return verify(session, kernel, problem, job.config, job.binary, builds).verified_on


def comparison_at_full_size(session: Session, job: Job) -> float:
    """Compares a candidate's outputs at the problem's own sizes, in the device's process; returns a launch's seconds.

    The reference is NumPy's, or the outputs of ``job.oracle``.
    """
    kernel = load_kernel(job.kernel)
    assert job.case is not None
    case = read_case(kernel, kernel.problem(job.problem), job.case)
    if job.oracle is not None:
        case = case_of_oracle(session, kernel, case, *job.oracle)
    return measure(session, kernel, case, job.config, job.binary, ONCE).median_s


def _edges(kernel: AnyKernel, problem: Any, config: Config) -> tuple[Any, ...]:
    """Returns the sizes to verify at: none if the only one is this problem, and NumPy would need minutes for it."""
    edges = tuple(kernel.edge_problems(problem, config))
    return () if edges == (problem,) and too_large_for_numpy(kernel, problem) else edges
