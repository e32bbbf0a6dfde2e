"""Measures times that can be compared: with a cold cache and an observed clock, and a check of the output afterwards.

One config gets a small budget, which ends early if it is clearly slower than the incumbent. Finalists are timed
together (interleaved.py).
"""

import shutil
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from ..core.config import Config
from ..core.definition import AnyKernel, Launch
from ..core.errors import Status, TrialFailure, explained
from ..devices.base import Binary, Function, Sample, Session
from ..records.measurement import Measurement, Protocol, Sustained, summary_of
from .case import N_LARGE, POISONS, Case, CaseInMemory, bytes_of

MEASURING = 1  # increase it when a change of this program lets a trial end in another way: older records become stale
MIN_CLOCK = 0.75  # share of the maximum clock below which samples are discarded and repeated
LONGEST_WAIT_S = 20.0  # total wait for a throttled clock to recover
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5  # seconds between checks of the clock
LOOK_AFTER = 3  # samples after which a slow config may be stopped
N_SHORT = 25  # launches of a short run
REST_S = 0.5  # idle time before a sustained run, so that the device starts cool
LONGEST_REPEATS_S = 1.0  # time limit of the checked launches
N_BEFORE = 2  # earlier launches, whose remains might change a result
PATTERNS = (*POISONS, 0x00)  # 0, since fresh memory is often 0
N_CONTENTS = len(PATTERNS) + 1
CLEARLY_SLOWER = 1.3  # ratio of a config's fastest sample to the incumbent's median


def measure(
    session: Session, kernel: AnyKernel, case: Case, config: Config, binary: Binary, protocol: Protocol
) -> Measurement:
    """Times one binary on ``case``, then checks its output.

    Raises:
        TrialFailure: wrong, noisy, or a failure of the device.
    """
    function = session.load(binary, session.timed_build)
    geometry = kernel.launch(case.problem, config)
    placed = timed_arguments(session, kernel, case)
    taken = TimedSamples(session, protocol.cold)
    placed.poison(POISONS[0])
    taken.warm_up(function, geometry, placed, protocol.n_warmup)
    taken.take(function, geometry, placed, min(LOOK_AFTER, protocol.n_samples))
    slow = protocol.incumbent_s is not None and taken.fastest > CLEARLY_SLOWER * protocol.incumbent_s
    if not slow:
        taken.take(function, geometry, placed, protocol.n_samples)
    errors = check_after(function, geometry, placed, case)
    measured = taken.summary(slow, errors)
    if not protocol.energy_s:
        return measured
    run = streamed(function, geometry, placed, protocol.energy_s)
    return replace(measured, joules=run.joules, watts=run.watts)


def sustained(
    session: Session, kernel: AnyKernel, case: Case, config: Config, binary: Binary, seconds: float
) -> Sustained:
    """Launches one binary back to back for ``seconds``; a GPU rests for REST_S seconds before.

    Raises:
        TrialFailure: a failure of the device.
    """
    function = session.load(binary, session.timed_build)
    placed = timed_arguments(session, kernel, case)
    if session.clock_hz():
        time.sleep(REST_S)
    return streamed(function, kernel.launch(case.problem, config), placed, seconds)


def streamed(function: Function, geometry: Launch, placed: CaseInMemory, seconds: float) -> Sustained:
    """Returns the figures of back-to-back launches for ``seconds``. Raises TrialFailure for a failure of the device."""
    run = function.stream(geometry, placed.arguments(geometry), seconds)
    taken, n = run.seconds, run.n_launches
    return Sustained(
        short_s=median(taken[:N_SHORT]),
        sustained_s=median(taken[3 * len(taken) // 4 :]),
        n=n,
        duration_s=sum(taken) * n / len(taken),
        joules=None if run.joules is None else run.joules / n,
    )


def repeated(session: Session, kernel: AnyKernel, case: Case, config: Config, binary: Binary, n: int) -> int:
    """Launches one binary up to ``n`` times, with a cold and a warm cache by turns, and checks each launch's outputs.

    A race may leave thousands of launches right. It shows sooner when memory is busy, so launches are queued like timed
    ones. Before a launch, outputs and workspace hold one of three patterns, or the outputs hold another answer and the
    workspace is as the last launch left it. Returns the number of launches: fewer than ``n`` after LONGEST_REPEATS_S.

    Raises:
        TrialFailure: wrong, with the launch's number, or a failure of the device.
    """
    function = session.load(binary, session.timed_build)
    geometry = kernel.launch(case.problem, config)
    placed = timed_arguments(session, kernel, case)
    end = time.monotonic() + LONGEST_REPEATS_S
    for i in range(n):
        if i > 0 and time.monotonic() > end:
            return i
        if i % N_CONTENTS < len(PATTERNS):
            placed.poison(PATTERNS[i % N_CONTENTS])
        else:
            placed.hold_another()
        cold = i % (2 * N_CONTENTS) < N_CONTENTS  # each content, cold and warm
        function.samples(geometry, placed.arguments(geometry), 1, cold=cold)
        try:
            with explained(f"launch {i + 1} of {n} with the same inputs"):
                placed.check_outputs(case)
        except TrialFailure:
            _forget(case.key)
            raise
    return n


@contextmanager
def _copied(binary: Binary, build: str) -> Iterator[Binary]:
    """Yields a copy of a binary. A file that is loaded twice may give the same module, with old values of variables."""
    with TemporaryDirectory(prefix="autotune-copy-") as folder:
        path = binary.files[build]
        for each in path.parent.glob(f"{path.stem}.*"):  # the binary, and the file of facts about it
            shutil.copy(each, folder)
        yield replace(binary, files={**binary.files, build: Path(folder) / path.name})


class TimedSamples:
    """The samples of one binary so far."""

    def __init__(self, session: Session, cold: bool) -> None:
        self.session = session
        self.lowest_clock = MIN_CLOCK * session.device.max_clock_hz
        self.cold = cold
        self.kept: list[Sample] = []
        self.n_throttled = 0
        self.waited_s = 0.0

    @property
    def fastest(self) -> float:
        return min(s.seconds for s in self.kept)

    @property
    def median_s(self) -> float:
        return median(s.seconds for s in self.kept)

    def warm_up(self, function: Function, geometry: Launch, placed: CaseInMemory, n: int) -> None:
        function.samples(geometry, placed.arguments(geometry), n, cold=self.cold)

    def take(self, function: Function, geometry: Launch, placed: CaseInMemory, until: int) -> None:
        """Takes samples until ``until`` good ones are there."""
        while len(self.kept) < until:
            new = function.samples(geometry, placed.arguments(geometry), until - len(self.kept), cold=self.cold)
            good = [s for s in new if not 0 < s.clock_hz < self.lowest_clock]
            self.kept += good
            if len(good) == len(new):
                continue
            self.n_throttled += len(new) - len(good)
            self._wait_for_the_clock()

    def _wait_for_the_clock(self) -> None:
        """Waits, without launches, until the clock of the idle device recovers; launches might keep it low."""
        pause_s = SHORTEST_PAUSE_S
        while True:
            if self.waited_s > LONGEST_WAIT_S:
                raise TrialFailure(
                    Status.NOISY,
                    f"the SM clock stayed under {self.lowest_clock / 1e6:.0f} MHz for {self.waited_s:.0f} s: "
                    "the device is throttled; look at its power, temperature and other users",
                )
            time.sleep(pause_s)
            self.waited_s += pause_s
            if not 0 < self.session.clock_hz() < self.lowest_clock:
                return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def summary(self, stopped_early: bool, errors: tuple[float, float]) -> Measurement:
        seconds = tuple(s.seconds for s in self.kept)
        return Measurement(
            **summary_of(seconds),
            samples_s=seconds,
            clock_hz=median(s.clock_hz for s in self.kept),
            cold=self.cold,
            n_throttled=self.n_throttled,
            stopped_early=stopped_early,
            max_error=errors[0],
            rms_error=errors[1],
        )


def check_after(function: Function, geometry: Launch, placed: CaseInMemory, case: Case) -> tuple[float, float]:
    """Checks the outputs of the timed binary at the timed size: from poisoned outputs, and from another answer.

    In timed launches the outputs already hold the answer, so a binary that skips its work would be fast and right.
    """
    placed.poison(POISONS[1])
    placed.launch(function, geometry)
    try:
        errors = placed.check(case)
        placed.hold_another()
        placed.launch(function, geometry)
        with explained("where outputs held another answer before the launch"):
            placed.check_outputs(case)
        return errors
    except TrialFailure:
        _forget(case.key)  # inputs or canaries may be damaged: the next trial gets new buffers
        raise


def check_carried(
    session: Session, kernel: AnyKernel, case: Case, inputs: Mapping[str, object], config: Config, binary: Binary
) -> None:
    """Checks that earlier launches do not change a result: launches on other ``inputs`` twice, at the timed size.

    The first launch finds the workspace and the kernel's own variables as launches on the inputs of ``case`` left them;
    the second one runs in a binary that was loaded anew. Both results, without a reference of NumPy, must agree within
    twice the tolerance.

    Raises:
        TrialFailure: wrong, or a failure of the device.
    """
    function, geometry = session.load(binary, session.timed_build), kernel.launch(case.problem, config)
    placed = timed_arguments(session, kernel, case)
    try:
        with explained("on other inputs the result depends on what launches before have left"):
            placed.poison(POISONS[0])
            for _ in range(N_BEFORE):
                placed.launch(function, geometry)
            placed.give(inputs)
            placed.poison(POISONS[0], with_workspace=False)
            placed.launch(function, geometry)
            carried = replace(case, key=f"{case.key} carried by {binary.key}", reference=placed.outputs(), slack=2.0)
            placed.poison(POISONS[1])
            with _copied(binary, session.timed_build) as copy:
                placed.launch(session.load(copy, session.timed_build), geometry)
            placed.check_outputs(carried)
    finally:
        _forget(case.key)  # the next trial gets new buffers, with the inputs of its case


_placed: OrderedDict[str, CaseInMemory] = OrderedDict()  # buffers by case; the last used are at the end


def timed_arguments(session: Session, kernel: AnyKernel, case: Case) -> CaseInMemory:
    """Returns the timed problem's buffers, which stay from trial to trial.

    If they are small, the buffers of up to N_LARGE problems stay at a time.
    """
    if case.key not in _placed:
        n_bytes = bytes_of(kernel.arrays(case.problem))
        while _placed and (len(_placed) >= N_LARGE or n_bytes + _placed_bytes() > session.keep_bytes):
            _forget(next(iter(_placed)))
        _placed[case.key] = CaseInMemory(session, kernel, case.problem, case.inputs)
    _placed.move_to_end(case.key)
    return _placed[case.key]


def release_all(session: Session) -> None:
    """Frees all memory that stays between trials."""
    for key in list(_placed):
        _forget(key)
    session.release()


def _placed_bytes() -> int:
    return sum(bytes_of(placed.specs) for placed in _placed.values())


def _forget(key: str) -> None:
    if key in _placed:
        _placed.pop(key).__exit__()
