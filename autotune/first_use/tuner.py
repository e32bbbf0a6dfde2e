"""Serves the first use of one problem: candidates are compiled side by side, and meet in a contest on the device.

In the contest each is checked, those that agree are timed, and the fastest wins. Its time is what the device's process
takes for the candidates, with NumPy's references; only the start of a process is not counted. Whatever a candidate does
costs this candidate, and at most a quarter of the time that is left.

Request and answer are plain data (``runtime.tune_once``), since a package that asks has classes of its own.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from typing import Any

from ..core.config import Config
from ..core.definition import AnyKernel, problem_name
from ..core.device import Device
from ..core.errors import Status, TrialFailure, UsageError, clipped, one_line
from ..core.schema import Unsound
from ..devices import find_device
from ..devices.base import Session
from ..records.measurement import Measurement, Protocol
from ..records.trial import Trial
from ..rendering.render import render
from ..runtime.tune_once import FORMAT, NOT_TRIED, Attempt, TellLine, TunedHere, checked_outcome
from ..source.registry import load_kernel
from ..sweep.final_round import Contestant, rank
from ..system.cache import scratch_dir
from ..system.installation import VERSION
from ..system.lock import device_lock
from ..system.memory import available_bytes
from ..system.processes import Died, n_cpus
from ..trial.case import bytes_of, too_large_for_numpy
from ..trial.compile import CompilePool
from ..trial.stations import check_limits
from ..trial.verify import verify
from ..trial.worker import Job, Worker

COMPILE_S, START_S = 30.0, 30.0  # deadlines of each compile, and of the device's process to be ready
INPUTS_S = 10.0  # time that the inputs may take after the compiles
LITTLE_FLOPS, LITTLE_BYTES = 1e8, 2e7  # operations and arrays of a reference that NumPy makes while compilers work
CONTEXT_BYTES = 700 << 20  # a CUDA context with its modules
OTHERS = 1  # number of the inputs: those of a sweep come with parts of a reference, which may take NumPy seconds
STEP = 0.25  # share of the remaining time that a step may take; also the share of all time that is kept for timing
MOST_RESTARTS = 2  # starts of another device process after faults
LEAST_SAMPLES, MOST_SAMPLES = 5, 40
ONCE = Protocol(n_warmup=1, n_samples=1)
SHARE_TIMED = 0.7  # share of the remaining time that is planned for samples
LEAST_S = 0.05  # shortest deadline of a step
OVERHEAD_S = 0.0005  # time of one sample beside its launch: a flush of the caches, events
FAULTS = (Status.TIMED_OUT, Status.LAUNCH_FAILED)  # the process is dead, or its context may be
MOST_TOLD = 300  # characters of a reason


def tune_first(request: Mapping[str, Any], tell: TellLine) -> dict[str, str]:
    """Returns the ``outcome`` of a request as text, with how each candidate ended; or ``refused``, one line.

    ``tell`` takes lines for people. What a candidate does wrong is part of the outcome, not an exception.
    """
    began = time.monotonic()
    try:
        if request["format"] != FORMAT:
            raise UsageError(f"this is autotune {VERSION}, and the package was written by another one: emit it again")
        ended = _tuned(request, checked_outcome(request["outcome"].encode()), tell)
    except (UsageError, TrialFailure, Unsound, OSError, MemoryError, Died) as error:
        return {"refused": one_line(str(error)) or type(error).__name__}
    now, took_s = datetime.now(UTC).isoformat(timespec="seconds"), round(time.monotonic() - began, 3)
    return {"outcome": replace(ended, at=now, took_s=took_s).as_json()}


def _tuned(request: Mapping[str, Any], asked: TunedHere, tell: TellLine) -> TunedHere:
    """Returns the outcome after a contest. Raises UsageError for a request that cannot be served."""
    reference, fields = request["reference"], dict(asked.problem)
    kernel = load_kernel(reference)
    problem = kernel.problem(fields)
    target = find_device(request["identifier"])
    variants = [render(kernel, problem, kernel.space.parse(one.config)) for one in asked.attempts]
    if any(variant.key != one.source_key for variant, one in zip(variants, asked.attempts, strict=True)):
        why = f"renders another source of {kernel.name} than the package does: emit it again with this one"
        raise UsageError(f"the autotune that is installed here, {VERSION}, {why}")
    room = _room(kernel, problem, target.device, request["free_bytes"])
    default, builds = kernel.default_config(problem, target.device), target.module.builds[-1:]
    is_little = kernel.work(problem).flops <= LITTLE_FLOPS and bytes_of(kernel.arrays(problem)) <= LITTLE_BYTES
    with (
        scratch_dir() as folder,
        device_lock(target.module.lock_name(target.identifier), tell, request["wait_s"]),
        CompilePool(target, min(len(variants) + 1, n_cpus()), COMPILE_S) as pool,
        Worker(target, tries=1) as worker,
    ):
        worker.begin()
        inputs = pool.prepare(reference, fields, folder / "case", is_little, number=OTHERS)
        # The plain source, as the caller compiles it, who then finds the binary in its cache.
        compiles = [pool.submit(replace(variant, numbered=variant.source), builds) for variant in variants]
        attempts = [replace(one, message="no time was left") for one in asked.attempts]
        contest = Contest(kernel, problem, default, attempts, {}, worker, builds, is_little, request["seconds"])
        for number, (variant, compiling) in enumerate(zip(variants, compiles, strict=True)):
            try:
                binary, launch = compiling.result(), kernel.launch(problem, variant.config)
                check_limits(binary, launch, target.device)
                if (n_bytes := launch.workspace_bytes) > room:
                    why = f"its workspace of {n_bytes / 1e9:.3g} GB does not fit into {room / 1e9:.3g} GB"
                    raise TrialFailure(Status.RESOURCES, why)
                contest.attempts[number] = replace(attempts[number], registers=binary.registers)
                contest.jobs[number] = Job(reference, fields, variant.config, binary, folder / "case")
            except TrialFailure as failure:
                contest.ends(number, failure.status, failure.message)
        try:
            inputs.result(INPUTS_S)
        except TimeoutError as error:
            why = f"NumPy needs more than {INPUTS_S:g} s for inputs of these sizes, after the compiles (a sweep waits)"
            raise UsageError(why) from error
        contest.run()
    checked = () if contest.winner is None else contest.checked[contest.winner]
    return replace(asked, attempts=tuple(contest.attempts), winner=contest.winner, checked=checked, why=contest.why)


def _room(kernel: AnyKernel, problem: Any, device: Device, free_bytes: int | None) -> float:
    """Returns the bytes that a process with the problem's arrays leaves for the workspace of a launch.

    Raises UsageError if it needs more than is free; one line says both.
    """
    arrays = kernel.arrays(problem)
    outputs = sum(array.n_bytes for array in arrays.values() if array.is_compared)
    needed = 2 * (bytes_of(arrays) + outputs)  # outputs of one config, while another one runs, and both as references
    if device.kind == "cuda":
        needed += CONTEXT_BYTES + 2 * device.l2_bytes
    elif free_bytes is None:
        free_bytes = available_bytes()
    free = inf if free_bytes is None else free_bytes
    if needed > free:
        what = f"a process that tries its configs needs {needed / 1e9:.3g} GB of memory on {device.name}"
        raise UsageError(f"{what}, of which {free / 1e9:.3g} GB are free")
    return free - needed


@dataclass
class Contest:
    """One contest; ``run`` gives the attempts their ends, and finds the ``winner`` or says ``why`` there is none.

    Without ``has_reference``, the outputs that NumPy computed at the problem's own sizes, the candidates are compared
    with each other there, and only those in a group of more than half of them are right.
    """

    kernel: AnyKernel
    problem: Any
    default: Config
    attempts: list[Attempt]  # all candidates; those that did not compile have ended
    jobs: dict[int, Job]  # how to run the others, by number
    device: Worker
    builds: tuple[str, ...]  # those that are verified
    has_reference: bool
    seconds: float  # how long the device's process may work
    clock: Callable[[], float] = time.monotonic
    left_s: float = 0.0
    winner: int | None = None
    why: str = ""
    checked: dict[int, tuple[str, ...]] = field(default_factory=dict)  # problems at which a candidate was right
    _n_faults: int = 0
    _groups: dict[int, list[int]] = field(default_factory=dict)  # the first of those that agree -> all of them
    _one_launch_s: dict[int, float] = field(default_factory=dict)

    def run(self) -> None:
        self.left_s = self.seconds
        for number in self.jobs:
            if self.left_s > STEP * self.seconds and self._n_faults <= MOST_RESTARTS:
                self._check(number)
        if right := self._right():
            self._time(right)

    def ends(self, number: int, status: str, message: str = "") -> None:
        """Notes how a candidate ended."""
        self.attempts[number] = replace(self.attempts[number], status=str(status), message=one_line(message))

    def _check(self, number: int) -> None:
        try:
            with self._counted(STEP) as deadline_s:
                edges = self.device.call(verification, self.jobs[number], self.builds, deadline_s=deadline_s)
            self._join_group(number)
        except TrialFailure as failure:
            self._n_faults += failure.sticky or failure.status in FAULTS
            return self.ends(number, failure.status, failure.message)
        how = "against NumPy" if self.has_reference else "against each other"
        self.checked[number] = (*edges, f"{problem_name(self.problem)} ({how})")
        return self.ends(number, Status.MEASURED)

    def _join_group(self, number: int) -> None:
        """Launches a candidate at the problem's own sizes, and finds the group that gives the same outputs."""
        for first in (*self._groups, number):
            try:
                with self._counted(STEP) as deadline_s:
                    found = self.device.measure(self._compared(number, first), ONCE, deadline_s)
                self._one_launch_s[number] = found.median_s
                return self._groups.setdefault(first, []).append(number)
            except TrialFailure as failure:
                if self.has_reference or failure.status != Status.WRONG or first == number:
                    raise

    def _compared(self, number: int, other: int) -> Job:
        """Returns how to run a candidate, whose outputs are compared with NumPy's, or else with those of ``other``."""
        job, reference = self.jobs[number], self.jobs[other]
        return job if self.has_reference else replace(job, oracle=(reference.config, reference.binary))

    def _right(self) -> list[int]:
        """Returns the candidates of the group that more than half of those that ran belong to; the others are wrong."""
        ran = [number for group in self._groups.values() for number in group]
        most = max(self._groups.values(), key=len, default=[])
        wrong = f"at these sizes its outputs differ from those of {len(most)} others"
        if not ran:
            failed = next((one for one in self.attempts if one.status != NOT_TRIED), self.attempts[0])
            self.why = clipped(f"no config passed, the first ended as {failed.status}: {failed.message}", MOST_TOLD)
        elif 2 * len(most) <= len(ran):
            most, differ = [], f"the outputs of {len(ran)} configs differ at these sizes"
            wrong = self.why = f"{differ}, and no more than half of them agree"
        for number in {*ran} - {*most}:
            self.ends(number, Status.WRONG, wrong)
        return most

    def _time(self, right: list[int]) -> None:
        """Times briefly, and again with the samples that the rest of the time allows; the fastest wins.

        If only the second measurement takes too long, the first one counts.
        """
        jobs = [self._compared(number, right[0]) for number in right]
        round_s = sum(self._one_launch_s[number] + OVERHEAD_S for number in right)
        timed: list[Measurement] = []
        for most in (LEAST_SAMPLES, MOST_SAMPLES):
            n = min(most, int(SHARE_TIMED * self.left_s / round_s))
            try:
                if n >= LEAST_SAMPLES:
                    with self._counted(1.0) as deadline_s:
                        timed = self.device.measure_together(jobs, Protocol(n_warmup=1, n_samples=n), deadline_s)
            except TrialFailure as failure:
                if not timed or failure.status != Status.TIMED_OUT:
                    self.why = f"the timing failed: {one_line(str(failure))}"
                    return
        if not timed:
            self.why = f"{LEAST_SAMPLES} launches of each of {len(right)} configs take longer than was left"
            return
        contestants = []
        for number, job, found in zip(right, jobs, timed, strict=True):
            times: dict[str, Any] = {"median_s": found.median_s, "q1_s": found.q1_s, "q3_s": found.q3_s}
            self.attempts[number] = replace(self.attempts[number], n_samples=len(found.samples_s), **times)
            shared = self.kernel.launch(self.problem, job.config).shared_bytes + (job.binary.shared_bytes or 0)
            trial = Trial(number=number, status=Status.MEASURED, config=job.config, shared_bytes=shared, **times)
            contestants.append(Contestant(replace(trial, registers=job.binary.registers), found))
        self.winner = rank(contestants, self.default)[0].number

    @contextmanager
    def _counted(self, share: float) -> Iterator[float]:
        """Counts the time of a step on the device. Yields its deadline, a share of the time that is left.

        A process is started first if the last one died, which is not counted. Raises UsageError if it cannot open.
        """
        try:
            self.device.call(opening, deadline_s=START_S)
        except TrialFailure as failure:
            raise UsageError(str(failure)) from failure
        began = self.clock()
        try:
            yield max(LEAST_S, share * self.left_s)
        finally:
            self.left_s = max(0.0, self.left_s - (self.clock() - began))


def opening(session: Session) -> None:
    """Does nothing: a process that runs it has opened the device."""


def verification(session: Session, job: Job, builds: tuple[str, ...]) -> tuple[str, ...]:
    """Verifies a candidate at its edge sizes, in the device's process; returns the names of the problems.

    There are none if the only one is the problem itself, for which NumPy would need minutes.
    """
    kernel = load_kernel(job.kernel)
    problem = kernel.problem(job.problem)
    if tuple(kernel.edge_problems(problem, job.config)) == (problem,) and too_large_for_numpy(kernel, problem):
        return ()
    return verify(session, kernel, problem, job.config, job.binary, builds).verified_on
