"""The losses at left-out recorded problems of the model, and of the nearest problem's winner.

They decide which of the two a search tries first at a problem without a record.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from .coordinates import Domain, TransferPoint
from .model import Fill, Scales, points_of, posterior_of, some
from .neighbour import AWAY, OTHER_DEVICE, Neighbour, apart

N_LEFT_OUT = 12  # nearest problems, each of which is left out once
WORST_LOSS = 1.0  # losses are capped here, at twice the time, when means are compared


@dataclass(frozen=True)
class LeftOutLoss:
    """The losses, relative time - 1, at one recorded problem. ``model``: of the measured config that the model ranks
    first. ``winner``: of the nearest problem's winner; None if it was not measured there.
    """

    model: float
    winner: float | None


def losses_nearby(near: Sequence[Neighbour], domain: Domain, fill: Fill | None, scales: Scales) -> list[LeftOutLoss]:
    """Returns the losses at the nearest problems. Each one is left out in turn, on all of its devices.

    ``near``: nearest first; neighbours on other architectures are used for predictions, but are never left out.
    ``scales``: fitted to ``near``.
    """
    observed, pool = list[TransferPoint](), list[TransferPoint]()
    of_observed, of_asked = list[int](), list[int]()  # index of each point's neighbour
    for number, one in enumerate(near):
        is_left_out = one.kinship != OTHER_DEVICE and len(set(of_asked)) < N_LEFT_OUT
        measured = one.measured if is_left_out else some(one.measured)
        with suppress(Exception):  # another definition may have recorded configs that this one cannot launch
            points = points_of(one.problem, one.device, AWAY[one.kinship], measured, fill)
            observed += some(points)
            of_observed += [number] * (len(observed) - len(of_observed))
            pool += points if is_left_out else []
            of_asked += [number] * (len(pool) - len(of_asked))
    if not pool:
        return []
    posterior, values = posterior_of(observed, pool, domain, scales), scales.standardized(observed)
    losses = []
    for number in dict.fromkeys(of_asked):
        left_out = near[number]
        others = [n for n in dict.fromkeys(of_observed) if apart(near[n].problem, left_out.problem) > 0]
        if others:
            means, _ = posterior.predict(values, np.isin(of_observed, others))
            rows = np.flatnonzero(np.array(of_asked) == number)
            first = pool[rows[np.argmin(means[rows])]]
            losses.append(LeftOutLoss(first.time - 1, _loss_of_winner([near[n] for n in others], left_out)))
    return losses


def _loss_of_winner(others: Sequence[Neighbour], left_out: Neighbour) -> float | None:
    nearest = min(others, key=lambda other: _distance(other, left_out))
    time = dict(left_out.measured).get(nearest.measured[0][0])
    return None if time is None else time - 1


def model_is_better(losses: Sequence[LeftOutLoss]) -> bool:
    """Returns whether the model loses less, on average over the problems where the nearest winner was measured."""
    pairs = [(min(one.model, WORST_LOSS), min(one.winner, WORST_LOSS)) for one in losses if one.winner is not None]
    return sum(model for model, _ in pairs) < sum(winner for _, winner in pairs)


def _distance(one: Neighbour, other: Neighbour) -> float:
    """Returns the distance in octaves between two neighbours of one problem."""
    away = 0.0 if one.device.name == other.device.name else max(AWAY[one.kinship], AWAY[other.kinship])
    return apart(one.problem, other.problem) + away
