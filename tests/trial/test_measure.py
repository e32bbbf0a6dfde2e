"""The measuring protocol on a scripted device: throttled samples go, slow configs stop early, wrong output counts."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Config, Device, TrialFailure
from autotune.devices.base import Binary, Sample
from autotune.devices.host.buffer import HostBuffer
from autotune.records.measurement import Protocol
from autotune.source.registry import load_kernel
from autotune.trial.case import numpy_case, read_case, write_case
from autotune.trial.measure import measure
from autotune.trial.verify import case_of_oracle

from ..conftest import EXAMPLE

pytestmark = pytest.mark.quick

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 3, "n_chan": 40})
CONFIG = Config(KERNEL.default)
BINARY = Binary("v", "detect", "k", "code", {})
FAST = 2e9


class Scripted:
    """A session and a function in one: it computes with NumPy, and its samples are given."""

    check_builds, timed_build = ("plain",), "plain"
    cool_after = 0  # looks at the clock

    def __init__(self, samples: list[Sample], wrong: bool = False) -> None:
        self.device = Device("scripted", "host", "host", max_clock_hz=FAST)
        self.script, self.wrong, self.n_taken, self.order = list(samples), wrong, 0, [self]
        self.n_looks = 0  # at the clock

    def load(self, binary: Binary, build: str) -> Any:
        return self

    def clock_hz(self) -> float:
        self.n_looks += 1
        return FAST if self.n_looks > self.cool_after else 0.6 * FAST

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool, align: int = 256
    ) -> HostBuffer:
        return HostBuffer(name, shape, dtype, written=written, align=align)

    def launch(self, launch: Any, arguments: Any, *, seed: int = 0) -> None:
        power, voltage = arguments[0], arguments[1].read()
        power.write((np.sum(np.abs(voltage) ** 2, axis=0) + self.wrong).astype(np.float32))

    def samples(self, launch: Any, arguments: Any, n: int, *, cold: bool) -> list[Sample]:
        self.n_taken += n
        taken, self.script = self.script[:n], self.script[n:]
        return taken or [Sample(1.0, FAST)] * n


def run(script: list[Sample], monkeypatch: pytest.MonkeyPatch, wrong: bool = False, **protocol: Any) -> Any:
    monkeypatch.setattr("autotune.trial.measure._placed", OrderedDict())
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    session: Any = Scripted([Sample(9.0, FAST)] * 2 + script, wrong)  # two to warm up
    case = numpy_case(KERNEL, PROBLEM)
    return measure(session, KERNEL, case, CONFIG, BINARY, Protocol(**protocol)), session


def test_median_and_quartiles_of_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = run([Sample(t, FAST) for t in (5.0, 1.0, 3.0, 2.0, 4.0)], monkeypatch, n_samples=5)
    assert (found.q1_s, found.median_s, found.q3_s) == (2.0, 3.0, 4.0)
    assert found.samples_s == (5.0, 1.0, 3.0, 2.0, 4.0) and found.max_error < 1e-6


def test_throttled_samples_are_thrown_away_and_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Sample(1.0, FAST), Sample(7.0, 0.7 * FAST), Sample(1.0, FAST), Sample(1.0, FAST), Sample(1.0, FAST)]
    found, _ = run(script, monkeypatch, n_samples=4)
    assert found.samples_s == (1.0,) * 4 and found.n_throttled == 1


def test_nothing_is_launched_until_the_clock_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Sample(7.0, 0.7 * FAST), *[Sample(1.0, FAST)] * 4]
    monkeypatch.setattr(Scripted, "cool_after", 5)
    found, session = run(script, monkeypatch, n_samples=4)
    assert found.n_throttled == 1 and session.n_looks == 6 and session.n_taken == 2 + 5


def test_a_clock_that_stays_down_is_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrialFailure) as failure:
        run([Sample(1.0, 0.5 * FAST)] * 10_000, monkeypatch)
    assert failure.value.status == "noisy" and "throttled" in failure.value.message


def test_a_clearly_slower_config_is_stopped_early(monkeypatch: pytest.MonkeyPatch) -> None:
    found, session = run([Sample(2.0, FAST)] * 20, monkeypatch, n_samples=12, incumbent_s=1.0)
    assert found.stopped_early and len(found.samples_s) == 3 and session.n_taken == 5
    found, _ = run([Sample(1.1, FAST)] * 20, monkeypatch, n_samples=12, incumbent_s=1.0)
    assert not found.stopped_early and len(found.samples_s) == 12


def test_a_fast_config_with_a_wrong_output_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrialFailure) as failure:
        run([Sample(1e-9, FAST)] * 20, monkeypatch, wrong=True)
    assert failure.value.status == "wrong" and "power[0] is" in failure.value.message


def test_what_one_config_spoils_is_not_held_against_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    class Vandal(Scripted):
        def launch(self, launch: Any, arguments: Any, *, seed: int = 0) -> None:
            super().launch(launch, arguments)
            arguments[1].write(0 * arguments[1].read())

    monkeypatch.setattr("autotune.trial.measure._placed", OrderedDict())
    vandal: Any = Vandal([])
    case = numpy_case(KERNEL, PROBLEM)
    with pytest.raises(TrialFailure, match="the input was written"):
        measure(vandal, KERNEL, case, CONFIG, BINARY, Protocol())
    honest: Any = Scripted([])
    assert measure(honest, KERNEL, case, CONFIG, BINARY, Protocol()).max_error < 1e-6


def test_a_problem_too_large_for_numpy_is_checked_against_a_verified_config(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("autotune.trial.case.REFERENCE_FLOPS", 0)
    write_case(KERNEL, PROBLEM, tmp_path)
    session: Any = Scripted([])
    without = read_case(KERNEL, PROBLEM, tmp_path)
    assert not without.reference
    assert [part.field for part in without.parts] == ["n_chan"] * 3 and str(without.parts[-1]) == "chan 39"
    case = case_of_oracle(session, KERNEL, without, CONFIG, Binary("oracle", "detect", "oracle", "code", {}))
    assert case.reference["power"].dtype == np.float32  # the oracle's own output
    monkeypatch.setattr("autotune.trial.measure._placed", OrderedDict())
    assert measure(session, KERNEL, case, CONFIG, BINARY, Protocol()).max_error == 0.0
    bad: Any = Scripted([], wrong=True)
    with pytest.raises(TrialFailure, match="wrong"):
        measure(bad, KERNEL, case, CONFIG, BINARY, Protocol())
    for _ in range(2):  # it cannot stand in: NumPy answers some channels
        with pytest.raises(TrialFailure, match=r"wrong: at full size, chan \d+: power\[0\] is "):
            case_of_oracle(bad, KERNEL, without, CONFIG, Binary("bad", "detect", "bad", "code", {}))
