"""Expected times: what was measured here is taken, what another GPU took is scaled, and the rest is predicted."""

from dataclasses import asdict, replace
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from autotune import Device
from autotune.analysis.experiences import measured_problem
from autotune.recommend.duration import (
    CLOCK_HZ,
    ELSEWHERE,
    EXPECTED,
    HERE,
    LATENCY_S,
    MEMORY,
    OPERATIONS,
    Durations,
    bytes_per_s,
    floor_of,
)
from autotune.recommend.experience import MeasuredProblem
from autotune.records.record import read_sweeps
from autotune.source.registry import load_kernel

from ..recorded import A100, H100, H200

KERNEL = load_kernel("accumulate")
RESULTS = Path(__file__).parents[2] / "results"
STRANGER = replace(H200, name="NVIDIA H9000")


def problem(n: int, channels: int = 64, receivers: int = 64) -> Any:
    return KERNEL.problem({"n_accumulators": n, "n_channels": channels, "n_receivers": receivers})


def law(at: Any, device: Device) -> float:
    """Times that are no multiple of the floor: more accumulators are less efficient, few channels slow."""
    memory = bytes_per_s(device) or MEMORY[("H200",)]
    return float(KERNEL.work(at).bytes / memory * (1 + 0.1 * log(at.n_accumulators)) + 4e-6)


def measured(at: Any, device: Device) -> MeasuredProblem:
    return MeasuredProblem(asdict(at), device, (), law(at, device))


SOME = [problem(n, c, r) for n, c, r in product((1, 2, 8, 32), (16, 256), (16, 64, 256))]


@pytest.mark.quick
def test_floors_are_what_the_data_sheet_leaves() -> None:
    whole, few = problem(8, 1024, 64), problem(1, 1, 2)
    work = KERNEL.work(whole)
    seconds, ratio = floor_of(KERNEL, whole, H200, 4.8e12)
    assert seconds - LATENCY_S == pytest.approx(work.bytes / 4.8e12 * (1 + 1 / ratio))
    of_operations = work.flops / (OPERATIONS["sm_90"][work.unit] * H200.n_multiprocessors * CLOCK_HZ)
    assert ratio == pytest.approx(work.bytes / 4.8e12 / of_operations)
    seconds, ratio = floor_of(KERNEL, few, H200, 4.8e12)
    of_bytes = (seconds - LATENCY_S) / (1 + 1 / ratio)
    assert of_bytes == pytest.approx(2 * 132 * KERNEL.work(few).bytes / 4.8e12), "half of one is at work"
    names = {"NVIDIA H200": 4.8e12, "NVIDIA H100 PCIe": 2e12, "NVIDIA A100-SXM4-80GB": 2.039e12, "NVIDIA L4": 0.3e12}
    assert {name: bytes_per_s(replace(H200, name=name)) for name in names} == names
    assert bytes_per_s(STRANGER) is None


@pytest.mark.quick
def test_what_was_measured_is_taken_or_scaled() -> None:
    given = [*(measured(at, H200) for at in SOME), measured(problem(1), A100)]
    durations = Durations(KERNEL, given, "sm_90")
    at = SOME[-1]
    here, scaled = durations.expected(at, H200), durations.expected(at, H100)
    assert here and (here.seconds, here.how) == (law(at, H200), HERE)
    assert str(here) == f"{1e3 * here.seconds:.4g} ms (measured here)"
    assert scaled and scaled.how == ELSEWHERE
    assert scaled.seconds == pytest.approx(here.seconds * 4.8 / 2, rel=0.01), "by the speed of both memories"
    as_it_is = durations.expected(at, STRANGER)
    assert as_it_is and as_it_is.seconds == pytest.approx(here.seconds), "its memory is not known"
    assert Durations(KERNEL, given, "sm_120").expected(at, replace(H200, arch="sm_120")) is None
    assert Durations(KERNEL, [], "sm_90").expected(at, H200) is None


def test_a_size_that_is_hardly_another_counts_as_the_same() -> None:
    durations = Durations(KERNEL, [measured(at, H200) for at in SOME], "sm_90")
    at = SOME[-1]
    almost, other = replace(at, n_channels=at.n_channels + 1), replace(at, n_channels=at.n_channels + 8)
    found = durations.expected(almost, H200), durations.expected(other, H200)
    assert [time and time.how for time in found] == [HERE, EXPECTED]


def test_problems_between_and_beyond_are_predicted() -> None:
    durations = Durations(KERNEL, [measured(at, H200) for at in SOME], "sm_90")
    for at, within in ((problem(4), 1.15), (problem(16, 100, 110), 1.1), (problem(1, 1024, 300), 1.25)):
        found = durations.expected(at, H100)
        assert found and found.how == EXPECTED
        assert exp(abs(log(found.seconds / law(at, H100)))) < within


def test_what_is_left_out_is_not_looked_at() -> None:
    """Also not where another device has it."""
    jump = problem(8, 64, 128)
    given = [*(measured(at, H200) for at in SOME), measured(jump, H200), measured(jump, H100)]
    given[-2:] = [replace(one, seconds=9 * one.seconds) for one in given[-2:]]
    durations = Durations(KERNEL, given, "sm_90")
    found = [durations.expected(jump, device, is_left_out=True) for device in (H200, H100)]
    recorded = [one.seconds for one in given[-2:]]
    assert [time and time.seconds for time in found] == pytest.approx([each / 9 for each in recorded], rel=0.3)
    alone = Durations(KERNEL, given[-2:], "sm_90")
    assert alone.expected(jump, H200, is_left_out=True) is None


def test_a_record_of_another_definition_is_left_out() -> None:
    odd = MeasuredProblem({"colour": 3}, H200, (), 1e-6)
    found = Durations(KERNEL, [odd, measured(SOME[0], H200)], "sm_90").expected(SOME[0], H200)
    assert found and found.how == HERE
    assert Durations(KERNEL, [odd], "sm_90").expected(SOME[0], H200) is None


@pytest.mark.parametrize("name", ["channelise", "pfb_fir", "postproc", "correlate", "accumulate"])
def test_recorded_times_are_foretold_by_the_others(name: str) -> None:
    sweeps = [sweep for sweep in read_sweeps([RESULTS])[0] if sweep.kernel == name and sweep.median_s]
    kernel, given = load_kernel(name), list(map(measured_problem, sweeps))
    durations = Durations(kernel, given, "sm_90")
    times = [durations.expected(kernel.problem(one.problem), one.device, is_left_out=True) for one in given]
    off = [abs(log(time.seconds / one.seconds)) for time, one in zip(times, given, strict=True) if time is not None]
    assert len(off) == len(sweeps) and median(off) < log(1.101)
