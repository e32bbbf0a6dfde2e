"""What a search begins with: winners of the problem itself, winners of near problems, and the hints of a model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from autotune import Config, Device
from autotune.core.enumeration import Enumeration
from autotune.recommend.distance import SAME_ARCHITECTURE
from autotune.recommend.experience import MeasuredProblem
from autotune.search.warm_start import N_FIRST, N_READ, known, warm_start
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import A100, DEFAULT, H100, H200, TALL, WIDE, record, write_verdict

pytestmark = pytest.mark.quick

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 128, "n_chan": 4096})
SPACE = KERNEL.space.enumerate(PROBLEM, H200)
LIKE = replace(H100, name="NVIDIA H800", n_multiprocessors=H200.n_multiprocessors)
HERE = {"n_time": 128, "n_chan": 4096}
OTHERS = [config for config in SPACE.configs if config not in (DEFAULT, WIDE, TALL)]


def first(
    near: Sequence[MeasuredProblem],
    n_hints: int = 4,
    done: Collection[Config] = (DEFAULT,),
    space: Enumeration = SPACE,
    before: MeasuredProblem | None = None,
    own: Mapping[Config, float] = {},
) -> tuple[Config, ...]:
    return warm_start(KERNEL, PROBLEM, H200, space, near, own, n_hints, done, before)[0]


def recorded(results: Path) -> tuple[MeasuredProblem, ...]:
    return known(results, KERNEL, PROBLEM, H200)


def near(best: Config, n_chan: int, device: Device = H200, then: Sequence[Config] = (DEFAULT,)) -> MeasuredProblem:
    problem = KERNEL.problem({"n_time": 128, "n_chan": n_chan})
    times = ((best, 1.0), *((config, 1.5 + 0.1 * i) for i, config in enumerate(then)))
    return MeasuredProblem(asdict(problem), device, times, 1e-5)


# ---------------------------------------------------------------------- the problem itself, elsewhere
def test_winners_of_this_very_problem_come_first_those_of_the_likest_device_before_others(tmp_path: Path) -> None:
    for device, best in ((H100, WIDE), (LIKE, TALL), (A100, OTHERS[0])):
        record(tmp_path, device, {best: 1.0, DEFAULT: 2.0}, **HERE)
    record(tmp_path, H200, {OTHERS[1]: 1.0, DEFAULT: 2.0}, n_time=128, n_chan=4097)
    assert first(recorded(tmp_path))[:3] == (TALL, WIDE, OTHERS[1])
    before = near(OTHERS[2], 4096)
    assert first(recorded(tmp_path), before=before)[:3] == (OTHERS[2], TALL, WIDE)


def test_the_winners_of_all_like_devices_are_read_however_many(tmp_path: Path) -> None:
    n = N_READ[SAME_ARCHITECTURE] + 3
    for i in range(n):
        record(tmp_path, replace(H100, name=f"NVIDIA H100 {i}"), {OTHERS[i]: 1.0, DEFAULT: 2.0}, **HERE)
    assert set(first(recorded(tmp_path))[:n]) == set(OTHERS[:n])


def test_the_final_round_says_who_won(tmp_path: Path) -> None:
    path = record(tmp_path, H100, {TALL: 1.0, WIDE: 1.01, DEFAULT: 2.0}, **HERE)
    assert first(recorded(tmp_path))[0] == TALL
    rows = [{"config": dict(c), "number": i, "median_s": 1e-6} for i, c in enumerate((TALL, WIDE))]
    write_verdict(path, {"winner": rows[1], "finalists": rows[::-1]})
    assert first(recorded(tmp_path))[0] == WIDE
    write_verdict(path, {"winner": rows[1], "finalists": rows[::-1], "objectives": ["energy"]})
    assert first(recorded(tmp_path))[0] == TALL, "the most frugal is not the fastest"


def test_what_is_not_allowed_here_or_was_tried_is_passed_over(tmp_path: Path) -> None:
    record(tmp_path, H100, {WIDE: 1.0, DEFAULT: 2.0}, **HERE)
    everything = [*recorded(tmp_path), near(TALL, 8192), near(OTHERS[0], 16384)]
    assert first(everything)[0] == WIDE and TALL in first(everything)
    without = Enumeration(tuple(config for config in SPACE.configs if config not in (WIDE, TALL)))
    assert OTHERS[0] in first(everything, space=without) and {WIDE, TALL}.isdisjoint(first(everything, space=without))
    done = {DEFAULT, WIDE, OTHERS[0]}
    assert TALL in first(everything, done=done) and done.isdisjoint(first(everything, done=done))


# ---------------------------------------------------------------------- near problems, and what is learnt from them
def test_what_the_neighbours_recommend_follows_and_their_expectation_is_a_column() -> None:
    """The trees learn that OTHERS[0] is fast at all sizes, though it won at none, and that most are slow."""
    slow = [(config, 3.0) for config in OTHERS[1:12]]
    times = ((TALL, 1.0), (WIDE, 1.01), (OTHERS[0], 1.02), *slow)
    neighbours = [replace(near(TALL, n), measured=times) for n in (1024, 2048, 8192, 16384)]
    found, columns = warm_start(KERNEL, PROBLEM, H200, SPACE, neighbours, {}, 4, (DEFAULT,))
    assert set(found[:4]) >= {TALL, WIDE} and not set(found) & set(OTHERS[1:12])
    expected = dict(zip(SPACE.configs, columns["expected by neighbours"], strict=True))
    assert max(expected[one] for one in (TALL, WIDE, OTHERS[0])) < 0.05 < min(expected[one] for one in OTHERS[1:12])
    assert len(found) == len(set(found)) == 4 + N_FIRST - 1


def test_the_problems_own_times_count_too() -> None:
    own = {OTHERS[0]: 1e-5, **dict.fromkeys(OTHERS[1:12], 5e-5)}
    done = (DEFAULT, *own)
    _, columns = warm_start(KERNEL, PROBLEM, H200, SPACE, [near(TALL, 8192)], own, 4, done)
    expected = dict(zip(SPACE.configs, columns["expected by neighbours"], strict=True))
    assert expected[OTHERS[0]] < expected[OTHERS[1]]
    assert set(first([near(TALL, 8192)], done=done, own=own)).isdisjoint(done)


def test_where_nothing_is_recorded_there_is_no_hint() -> None:
    assert first([]) == ()
    assert TALL in first([near(TALL, 8192)], 4)
