"""A contest keeps to its time, which an injected clock tells: work is counted here, and nothing waits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from autotune import Config, UsageError
from autotune.core.errors import Status, TrialFailure
from autotune.devices.base import Binary
from autotune.first_use.tuner import LEAST_SAMPLES, MOST_SAMPLES, Contest, opening
from autotune.records.measurement import Measurement, Protocol
from autotune.runtime.tune_once import Attempt
from autotune.source.registry import load_kernel
from autotune.trial.worker import Job

from .asking import PARTIES, ways

KERNEL = load_kernel(PARTIES)
PROBLEM = KERNEL.problem({"n": 5000})
LAUNCH_S = 0.001


@dataclass
class Pretended:
    """A device's process of which only the time is real, as ``now`` has it. Each config takes ``seconds``."""

    now: float = 0.0
    check_s: float = 0.01
    seconds: dict[Config, float] = field(default_factory=dict)
    failing: dict[Config, TrialFailure] = field(default_factory=dict)
    when_timed: TrialFailure | None = None
    when_timed_again: TrialFailure | None = None
    calls: list[str] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)
    n_launches: int = 0
    starts_s: float = 5.0  # time of a start, which no contest counts
    opens: bool = True
    is_open: bool = False

    def call(self, function: Callable[..., Any], *arguments: Any, deadline_s: float) -> Any:
        if function is opening:
            return self.open()
        self.calls.append(function.__name__)
        self.deadlines.append(deadline_s)
        failure = self.failing.get(arguments[0].config)
        hangs = self.check_s > deadline_s or (failure is not None and failure.status == Status.TIMED_OUT)
        self.now += deadline_s if hangs else self.check_s
        if hangs or failure:
            self.is_open = False
            raise failure or TrialFailure(Status.TIMED_OUT, "it is late")
        return ("n=3", "n=257")

    def open(self) -> None:
        if not self.opens:
            raise UsageError("the worker process could not open the device")
        if not self.is_open:
            self.now += self.starts_s
            self.calls.append("start")
        self.is_open = True

    def measure(self, job: Job, protocol: Protocol, deadline_s: float) -> Measurement:
        return self.measure_together([job], protocol, deadline_s)[0]

    def measure_together(self, jobs: list[Job], protocol: Protocol, deadline_s: float) -> list[Measurement]:
        if len(jobs) > 1 and self.when_timed:
            raise self.when_timed
        if protocol.n_samples > LEAST_SAMPLES and self.when_timed_again:
            raise self.when_timed_again
        found = []
        for job in jobs:
            seconds = self.seconds.get(job.config, LAUNCH_S)
            samples = (seconds,) * protocol.n_samples
            self.now += seconds * (protocol.n_samples + protocol.n_warmup)
            self.n_launches += protocol.n_samples
            found.append(Measurement(samples, median(samples), seconds, seconds, 0.0, True, 0, False, 0.0, 0.0))
        return found


def contest(configs: list[Config], device: Any, *failed: Attempt) -> Contest:
    attempts = [*failed, *(Attempt(config, "predicted", "0" * 12) for config in configs)]
    binaries = {config: Binary("", "parties", str(config), "", {}) for config in configs}
    jobs = {
        number: Job(PARTIES, {"n": 5000}, one.config, binaries[one.config], Path("case"))
        for number, one in enumerate(attempts)
        if one not in failed
    }
    given = KERNEL, PROBLEM, configs[0], attempts, jobs, device, ("plain",)
    held = Contest(*given, has_reference=True, seconds=3.0, clock=lambda: device.now)
    held.run()
    return held


def ends(held: Contest) -> list[str]:
    return [one.status for one in held.attempts]


CONFIGS = ways("right", "right", "right", "patient")


def test_the_fastest_wins_after_as_many_launches_as_fit() -> None:
    device = Pretended(seconds={CONFIGS[2]: 0.9 * LAUNCH_S})
    held = contest(CONFIGS, device)
    assert held.winner == 2 and device.n_launches == 4 + 4 * (LEAST_SAMPLES + MOST_SAMPLES)
    slow = Pretended(seconds=dict.fromkeys(CONFIGS, 0.04))
    held = contest(CONFIGS, slow)
    assert held.winner is not None and 4 * LEAST_SAMPLES <= slow.n_launches - 4 < 4 * MOST_SAMPLES
    assert slow.now - slow.starts_s <= 3.0, "all of it"


@pytest.mark.parametrize("launch_s", [0.0001, 0.003, 0.02, 0.05, 0.08])
@pytest.mark.parametrize("n_hanging", [0, 1, 2])
def test_the_time_is_never_exceeded(launch_s: float, n_hanging: int) -> None:
    hanging = TrialFailure(Status.TIMED_OUT, "it hangs")
    configs = ways("low", "low", "right", "right")
    device = Pretended(
        seconds=dict.fromkeys(configs, launch_s), failing=dict.fromkeys(configs[:n_hanging], hanging), starts_s=0.0
    )
    held = contest(configs, device)
    assert device.now <= 3.0
    assert ends(held)[:n_hanging] == ["timed_out"] * n_hanging
    assert {*ends(held)[n_hanging:]} == {"measured"}


def test_a_hang_costs_a_quarter_of_what_is_left() -> None:
    configs = ways("low", "high", "right", "patient")
    hanging = TrialFailure(Status.TIMED_OUT, "it hangs")
    device = Pretended(failing=dict.fromkeys(configs[:2], hanging), check_s=0.0)
    held = contest(configs, device)
    assert device.deadlines[:2] == [0.75, 0.5625]
    assert held.winner in (2, 3) and device.calls.count("start") == 3, "a new process after each"


def test_candidates_for_which_no_time_is_left_are_not_tried() -> None:
    device = Pretended(check_s=0.28)
    held = contest(ways(*["right"] * 3, *["low"] * 3, *["high"] * 3, *["patient"] * 3), device)
    assert ends(held)[:7] == ["measured"] * 7 and ends(held)[-1] == "not_tried" and "measured" not in ends(held)[7:]
    assert held.winner is not None and device.now - device.starts_s <= 3.0 + device.starts_s * 2


def test_launches_that_are_too_long_to_be_timed_choose_nothing() -> None:
    device = Pretended(seconds=dict.fromkeys(CONFIGS, 0.2))
    held = contest(CONFIGS, device)
    assert held.winner is None
    assert held.why == "5 launches of each of 4 configs take longer than was left"


def test_after_two_restarts_no_further_process_starts() -> None:
    broken = TrialFailure(Status.LAUNCH_FAILED, "SIGSEGV")
    configs = ways("low", "low", "low", "right")
    device = Pretended(failing=dict.fromkeys(configs[:3], broken))
    held = contest(configs, device)
    assert ends(held) == ["launch_failed"] * 3 + ["not_tried"]
    assert device.calls.count("start") == 3 and held.winner is None


def test_a_device_that_does_not_open_ends_it_at_once() -> None:
    with pytest.raises(UsageError, match="could not open the device"):
        contest(CONFIGS, Pretended(opens=False))


def test_a_failure_while_all_are_timed_chooses_nothing() -> None:
    held = contest(CONFIGS, Pretended(when_timed=TrialFailure(Status.LAUNCH_FAILED, "SIGKILL")))
    assert held.winner is None and held.why == "the timing failed: launch_failed: SIGKILL"


def test_if_only_the_second_round_is_too_long_the_first_one_decides() -> None:
    late = TrialFailure(Status.TIMED_OUT, "it is late")
    held = contest(CONFIGS, Pretended(seconds={CONFIGS[2]: 0.9 * LAUNCH_S}, when_timed_again=late))
    assert held.winner == 2 and held.why == "" and held.attempts[2].n_samples == LEAST_SAMPLES
    broken = TrialFailure(Status.LAUNCH_FAILED, "SIGKILL")
    held = contest(CONFIGS, Pretended(when_timed_again=broken))
    assert held.winner is None and held.why == "the timing failed: launch_failed: SIGKILL"


def test_what_did_not_compile_takes_no_time() -> None:
    device = Pretended()
    failed = Attempt(CONFIGS[0], "predicted", "0" * 12, "compile_failed", "line 3")
    held = contest(CONFIGS[1:], device, failed)
    assert held.attempts[0] == failed and held.winner is not None
    assert device.calls == ["start", *["verification"] * 3]
