"""What a search begins with: winners of the problem itself, winners of near problems, and the hints of a model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from autotune import Config, Device
from autotune.core.enumeration import Enumeration
from autotune.search import warm_start as station
from autotune.search.neighbours import N_READ, known
from autotune.search.warm_start import N_WINNERS, warm_start
from autotune.source.registry import load_kernel
from autotune.transfer.left_out import LeftOutLoss
from autotune.transfer.neighbour import SAME_ARCHITECTURE, SAME_DEVICE, Neighbour

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
    near: Sequence[Neighbour],
    n_hints: int = 4,
    done: Collection[Config] = (DEFAULT,),
    space: Enumeration = SPACE,
    before: Neighbour | None = None,
    own: Mapping[Config, float] = {},
) -> tuple[Config, ...]:
    return warm_start(KERNEL, PROBLEM, H200, space, near, own, n_hints, done, before)[0]


def recorded(results: Path) -> tuple[Neighbour, ...]:
    return known(results, KERNEL, PROBLEM, H200)


def near(best: Config, n_chan: int, device: Device = H200, then: Sequence[Config] = (DEFAULT,)) -> Neighbour:
    kin = SAME_DEVICE if device == H200 else SAME_ARCHITECTURE
    problem = KERNEL.problem({"n_time": 128, "n_chan": n_chan})
    times = ((best, 1.0), *((config, 1.5 + 0.1 * i) for i, config in enumerate(then)))
    return Neighbour(asdict(problem), device, kin, abs(n_chan.bit_length() - (4096).bit_length()), times)


# ---------------------------------------------------------------------- the problem itself, elsewhere
def test_winners_of_this_very_problem_come_first_those_of_the_likest_device_before_others(tmp_path: Path) -> None:
    for device, best in ((H100, WIDE), (LIKE, TALL), (A100, OTHERS[0])):
        record(tmp_path, device, {best: 1.0, DEFAULT: 2.0}, **HERE)
    record(tmp_path, H200, {OTHERS[1]: 1.0, DEFAULT: 2.0}, n_time=128, n_chan=4097)
    assert first(recorded(tmp_path))[:3] == (TALL, WIDE, OTHERS[1])
    before = replace(near(OTHERS[2], 4096), distance=0.0)
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
    winners = [near(TALL, 8192), near(OTHERS[0], 16384), near(OTHERS[1], 32768), near(OTHERS[2], 65536)]
    everything = [*recorded(tmp_path), *winners]
    assert first(everything, 0) == (WIDE, TALL, OTHERS[0])
    without = Enumeration(tuple(config for config in SPACE.configs if config not in (WIDE, TALL)))
    assert first(everything, 0, space=without) == (OTHERS[0], OTHERS[1])
    assert first(everything, 0, done={DEFAULT, WIDE, OTHERS[0]}) == (TALL, OTHERS[1])


# ---------------------------------------------------------------------- near problems, and the model
def test_winners_are_of_the_nearest_problems_of_the_architecture_each_once(tmp_path: Path) -> None:
    far, twice = near(OTHERS[0], 65536), near(TALL, 16384)
    elsewhere = near(WIDE, 8192, H100)  # an octave, and another for the device
    assert first([far, twice, near(TALL, 8192), elsewhere], 0) == (TALL, WIDE)
    record(tmp_path, A100, {OTHERS[3]: 1.0, DEFAULT: 2.0}, n_time=128, n_chan=4097)
    assert first([*recorded(tmp_path), far], 0) == (OTHERS[0],), "an A100 is of another architecture"


@pytest.mark.parametrize("model_loses", [0.1, 0.3, 0.5])
def test_the_model_goes_first_only_where_it_loses_less(model_loses: float, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [LeftOutLoss(model_loses, 0.3), LeftOutLoss(9.0, None)]
    monkeypatch.setattr(station, "losses_nearby", lambda *given: losses)
    winners, neighbours = (TALL, WIDE), [near(TALL, 8192, then=OTHERS[:9]), near(WIDE, 16384, then=OTHERS[5:])]
    found = first(neighbours, done=(DEFAULT, *OTHERS[:4]))
    assert len(found) == len(set(found)) and set(winners) <= set(found) and len(found) > N_WINNERS
    assert (found[:N_WINNERS] == winners) == (model_loses >= 0.3) and set(OTHERS[:4]).isdisjoint(found)


def test_where_nothing_is_recorded_or_no_hint_is_wanted_there_is_none() -> None:
    assert first([]) == ()
    assert first([near(TALL, 8192)], 0) == (TALL,)
    assert TALL in first([near(TALL, 8192)], 4)
