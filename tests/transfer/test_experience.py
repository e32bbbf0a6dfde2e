"""Experience: what is kept of sweeps, how it is written, and the methods of predicting."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autotune import Config, Device
from autotune.analysis.predictions import best_method, experience_with, left_out_losses
from autotune.core.schema import Unsound
from autotune.records.record import read_sweeps
from autotune.source.registry import load_kernel
from autotune.transfer.coordinates import DEVICE, TransferPoint, coordinates
from autotune.transfer.experience import (
    DEFAULT,
    MODEL,
    NEIGHBOUR,
    MeasuredProblem,
    as_json,
    experience_of,
    ranked,
    read_experiences,
)
from autotune.transfer.neighbour import MISMATCH, apart

from ..conftest import EXAMPLE
from ..recorded import A100, H100, H200, HOST, TALL, WIDE, record
from ..recorded import DEFAULT as PLAIN

KERNEL = load_kernel(EXAMPLE)


def measured(n_time: int, times: dict[Config, float], device: Device = H200) -> MeasuredProblem:
    best = min(times.values())
    pairs = sorted(((c, t / best) for c, t in times.items()), key=lambda pair: pair[1])
    return MeasuredProblem({"n_time": n_time, "n_chan": 4096}, device, tuple(pairs), 1e-6 * best)


PROBLEMS = [measured(n, {PLAIN: 30.0, WIDE: 20.0, TALL: 25.0 if n < 1000 else 10.0}) for n in (64, 256, 4096, 16384)]


def first(method: str, n_time: int, device: Device = H200) -> Config:
    experience = replace(experience_of(KERNEL, PROBLEMS), method=method)
    return ranked(experience, KERNEL, KERNEL.problem({"n_time": n_time, "n_chan": 4096}), device, 3)[0]


def test_each_method_answers_in_its_own_way() -> None:
    assert first(MODEL, 100) == WIDE and first(MODEL, 8000) == TALL
    assert first(NEIGHBOUR, 100) == WIDE and first(NEIGHBOUR, 8000) == TALL
    assert first(DEFAULT, 8000) == PLAIN


def test_a_ranking_has_the_default_and_no_config_twice() -> None:
    experience = experience_of(KERNEL, PROBLEMS)
    problem = KERNEL.problem({"n_time": 100, "n_chan": 4096})
    for n in (6, 30):
        found = ranked(experience, KERNEL, problem, H200, n)
        assert len(set(found)) == len(found) <= n and PLAIN in found
    assert len(ranked(experience, KERNEL, problem, H200, 1)) == 1


def test_host_and_what_cannot_be_launched_are_left_out() -> None:
    foreign = MeasuredProblem({"n_time": 100, "colour": 3}, H200, ((WIDE, 1.0),), 1e-6)
    experience = experience_of(KERNEL, [*PROBLEMS, measured(100, {TALL: 1.0}, HOST), foreign])
    assert len(experience.problems) == len(PROBLEMS)
    assert experience.knows(H100) and not experience.knows(A100)
    with pytest.raises(ValueError, match="nothing was measured of detect"):
        experience_of(KERNEL, [foreign])


def test_it_reads_as_it_was_written() -> None:
    experience = experience_of(KERNEL, PROBLEMS)
    (again,) = read_experiences(json.loads(json.dumps(as_json([experience])))).values()
    assert again.problems == experience.problems and again.method == experience.method
    assert again.scales.weights == pytest.approx(experience.scales.weights, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("numbers", [[0, 0], [0, 0, 9], [0, 0, -2]])
def test_numbers_that_are_of_no_value_are_unsound(numbers: list[int]) -> None:
    content: Any = json.loads(json.dumps(as_json([experience_of(KERNEL, PROBLEMS)])))
    content["kernels"]["detect"]["problems"][0]["configs"][0] = numbers
    with pytest.raises(Unsound):
        read_experiences(content)


def test_the_method_that_loses_least_on_left_out_problems_is_taken(tmp_path: Any) -> None:
    """The default is best but for one size, whose winner is bad everywhere else."""
    for n_time in (64, 128, 512, 1024):
        record(tmp_path, H200, {PLAIN: 10.0, WIDE: 30.0, TALL: 11.0}, n_time=n_time)
    record(tmp_path, H200, {PLAIN: 12.0, WIDE: 10.0, TALL: 30.0}, n_time=256)
    sweeps, _ = read_sweeps([tmp_path])
    experience = experience_with(KERNEL, sweeps)
    assert experience is not None
    by_method = {m: left_out_losses(replace(experience, method=m), KERNEL, sweeps) for m in (MODEL, NEIGHBOUR, DEFAULT)}
    best, losses = best_method(experience, KERNEL, sweeps)

    def mean(found: dict[str, list[float | None]]) -> float:
        return float(np.mean([min(loss, 1.0) for values in found.values() for loss in values if loss is not None]))

    assert mean(losses) == min(mean(found) for found in by_method.values() if found[H200.name])
    assert losses == by_method[best.method] and best.method != NEIGHBOUR
    assert sorted(losses[H200.name])[-1] == pytest.approx(0.2)  # type: ignore[type-var]


def test_a_problem_is_left_out_of_all_devices_and_a_card_of_its_own_architecture(tmp_path: Any) -> None:
    for device in (H200, H100):
        record(tmp_path, device, {PLAIN: 30.0, WIDE: 20.0, TALL: 10.0}, n_time=64)
        record(tmp_path, device, {PLAIN: 30.0, WIDE: 20.0, TALL: 25.0}, n_time=4096)
    sweeps, _ = read_sweeps([tmp_path])
    experience = experience_with(KERNEL, sweeps)
    assert experience is not None
    found = left_out_losses(replace(experience, method=NEIGHBOUR), KERNEL, sweeps)
    assert {where: len(losses) for where, losses in found.items()} == {H200.name: 2, H100.name: 2, "sm_90": 4}
    assert sorted(found["sm_90"]) == pytest.approx([0.25, 0.25, 1.0, 1.0]), "the other problem's winner, never its own"  # type: ignore[type-var]


def test_distances_are_in_octaves_and_words_are_apart() -> None:
    assert apart({"a": 8, "b": "x"}, {"a": 2, "b": "x"}) == 2.0
    assert apart({"a": 8, "b": "x"}, {"a": 8, "b": "y"}) == MISMATCH
    assert apart({"a": True}, {"a": False}) == MISMATCH
    assert apart({"a": 8}, {}) == MISMATCH


def test_coordinates_are_the_same_whichever_points_are_asked_for() -> None:
    """Length scales that were fitted to many problems hold for one point alone."""
    domain = {"A": (1, 2, 4, 8), "B": (3, 6, 12), "C": ("x", "y")}
    configs = [Config(A=a, B=b, C=c) for a in (1, 2, 8) for b in (3, 6) for c in "xy"]
    points = [TransferPoint(c, {"n": 16, "w": "u"}, 1.0, np.array([1.0, 2.0, 3.0]), 1.0) for c in configs]
    whole = coordinates(points, domain)
    assert {"A", "B", "2^ in B", "C", "A * B", DEVICE, "field n", "field w"} <= set(whole.names) and len(
        whole.names
    ) == len(set(whole.names))
    assert "2^ in A" not in whole.names, "all values are powers of two: it says what A says"
    for row, point in enumerate(points):
        alone = coordinates([point], domain)
        assert alone.names == whole.names
        np.testing.assert_allclose(alone.columns[0], whole.columns[row])


def test_a_parameter_that_some_lack_has_a_column_for_that() -> None:
    domain = {"A": (1, 2), "B": (3, 6), "D": (1, 5)}
    points = [TransferPoint(c, {}, 0.0, np.zeros(0), 1.0) for c in (Config(A=1, B=3, D=5), Config(A=2))]
    found = coordinates(points, domain)
    assert [name for name in found.names if name.endswith("?")] == ["B?"], "B and D come together"
