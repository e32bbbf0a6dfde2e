"""Left-out problems: what the model and the nearest winner lose there, as on a problem that nobody recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autotune import Config, Device
from autotune.devices import cuda
from autotune.transfer.left_out import N_LEFT_OUT, LeftOutLoss, losses_nearby, model_is_better
from autotune.transfer.model import Fill, Scales, fitted, points_of
from autotune.transfer.neighbour import AWAY, OTHER_DEVICE, SAME_ARCHITECTURE, SAME_DEVICE, Neighbour

pytestmark = pytest.mark.quick

DEVICE = cuda.of_architecture("sm_90")
LIKE = replace(DEVICE, name="another")
DOMAIN = {"A": range(24), "B": (1, 2, 4)}
CONFIGS = [Config(A=a, B=b) for a in DOMAIN["A"] for b in DOMAIN["B"]]


def neighbour(octave: int, best_a: float, device: Device = DEVICE, kinship: int = SAME_DEVICE) -> Neighbour:
    """A problem of 2^octave, whose best A is ``best_a``; B = 4 is the best everywhere."""
    seconds = {c: 1.0 + 0.05 * abs(int(c.A) - best_a) + 0.1 * (c.B != 4) for c in CONFIGS}
    best = min(seconds.values())
    measured = sorted(((c, s / best) for c, s in seconds.items()), key=lambda pair: pair[1])
    return Neighbour({"n": 2**octave}, device, kinship, float(abs(octave - 10)), tuple(measured))


def losses(near: Sequence[Neighbour], fill: Fill | None = None) -> list[LeftOutLoss]:
    if not near:
        return losses_nearby(near, DOMAIN, fill, Scales({}, 0.1, 1.0, 0.0, 1.0))
    points = [p for n in near for p in points_of(n.problem, n.device, AWAY[n.kinship], n.measured, None)]
    return losses_nearby(near, DOMAIN, fill, fitted(points, DOMAIN, [(300, 20)]))


def test_a_model_follows_what_moves_with_the_problem_and_a_winner_cannot() -> None:
    found = losses([neighbour(octave, 2 * octave - 10) for octave in (9, 10, 8, 11, 7, 12, 6, 13)])
    assert len(found) == 8 and all(loss.winner == pytest.approx(0.1) for loss in found), "A is off by two"
    assert np.mean([loss.model for loss in found]) < 0.05 and model_is_better(found)


def test_a_problem_is_left_out_on_all_of_its_devices() -> None:
    """The optimum is at random: nothing but the problem itself on the other device would tell it."""
    bests = {9: 3, 11: 20, 8: 11, 12: 0}
    own = [neighbour(octave, best) for octave, best in bests.items()]
    other = [neighbour(octave, best, LIKE, SAME_ARCHITECTURE) for octave, best in bests.items()]
    found = losses([*own, *other])
    assert len(found) == 8 and all(loss.winner and loss.model > 0.1 for loss in found)


def test_a_winner_that_was_not_measured_there_is_not_told() -> None:
    near = [neighbour(9, 3), neighbour(12, 20), neighbour(20, 3)]
    near[0] = replace(near[0], measured=tuple(pair for pair in near[0].measured if pair[0].A != 20))
    assert [loss.winner is None for loss in losses(near)] == [True, False, False]


def test_only_the_nearest_of_the_architecture_are_left_out() -> None:
    near = [neighbour(octave, 3) for octave in range(10, 10 + N_LEFT_OUT + 3)]
    assert len(losses(near)) == N_LEFT_OUT
    assert len(losses([near[0], near[1], replace(near[2], kinship=OTHER_DEVICE)])) == 2
    assert losses([near[0]]) == losses([]) == []


def test_what_another_definition_recorded_is_passed_over() -> None:
    def fill(fields: Mapping[str, Any], device: Device | None, configs: Sequence[Config]) -> np.ndarray:
        if fields["n"] == 2**9:
            raise TypeError("recorded by another definition")
        return np.zeros((len(configs), 0))

    assert len(losses([neighbour(octave, 3) for octave in (9, 11, 8)], fill)) == 2


@pytest.mark.parametrize(
    ("found", "is_better"),
    [
        ([], False),
        ([LeftOutLoss(0.0, None)], False),
        ([LeftOutLoss(0.1, 0.1)], False),
        ([LeftOutLoss(0.1, 0.2), LeftOutLoss(5.0, None)], True),
        ([LeftOutLoss(0.1, 0.2), LeftOutLoss(0.4, 0.2)], False),
        ([LeftOutLoss(9.0, 1.5), LeftOutLoss(0.1, 0.2)], True),
    ],
)
def test_the_model_is_better_only_by_what_was_told(found: list[LeftOutLoss], is_better: bool) -> None:
    assert model_is_better(found) is is_better
