"""Predicts each configuration of a problem from recorded neighbours, to choose where a search begins.

A Gaussian process over (configuration, problem): times of one sweep, relative to its best, say something of a like
configuration at a near problem. Two points correlate by the Matern covariance of the search (search.kernel), over the
features of both configurations, how their launches fill the device, and the octaves between both problems; how much
each of these matters is fitted. After Swersky, Snoek and Adams, Multi-Task Bayesian Optimization, NIPS 2013, with the
distance of the problems in place of a learned covariance of tasks.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..core.config import Config
from ..core.definition import Device
from ..core.problem import Problem
from ..core.space import Enumeration
from .covariance import Hyperparameters, squared_differences
from .features import features_of, levels_of
from .neighbour import AWAY, MISMATCH, Neighbour, octave
from .one_thread import one_thread
from .posterior import Posterior

CAP = 2.0  # relative times are capped here: how slow a slow config is says nothing about fast ones
N_BEST, N_OTHERS = 20, 12  # configurations of each neighbour: its best, and some from the best to the worst of the rest
N_FIT = 200  # observations that the length scales are fitted to: the problem's own, and some of its neighbours
DARING = 0.5  # standard deviations below the expected time at which hints are ranked

Fill = Callable[[Mapping[str, Any], Device | None, Sequence[Config]], np.ndarray]


@dataclass(frozen=True)
class TransferPoint:
    """A configuration at a problem: its problem's fields, the octaves that its device is away, how its launch fills it,
    and its time relative to the best.
    """

    config: Config
    fields: Mapping[str, object]
    away: float
    occupancy: np.ndarray
    time: float


class Expectation:
    """Predicts the ``asked`` points from points ``elsewhere`` and the problem's ``own``.

    ``times``: the mean of each, of standardized logarithms, float [n_asked].
    """

    def __init__(
        self, elsewhere: Sequence[TransferPoint], own: Sequence[TransferPoint], asked: Sequence[TransferPoint]
    ) -> None:
        self.configs = [point.config for point in asked]
        observed = [*elsewhere, *own]
        self._values = _standardized(np.log(np.minimum([point.time for point in observed], CAP)))
        self._n_observed = len(observed)
        self._columns, self._groups = _coordinates([*observed, *asked])
        self._hyper = Hyperparameters(int(self._groups.max()) + 1)
        with one_thread():
            self._fit(len(elsewhere), len(own))
            n, n_all = len(observed), len(self._columns)
            self._posterior = Posterior(self._columns, self._groups, self._hyper, range(n), np.arange(n, n_all))
            self.times = self._posterior.mean(self._values)

    def hints(self, k: int, known: Container[Config] = ()) -> tuple[Config, ...]:
        """Returns at most k configurations worth a trial, the most promising first, none of ``known``.

        The least of mean - DARING deviations; each counts as if its outcome were its mean when the next is chosen, so
        that they are not k times the same.
        """
        taken = np.array([config in known for config in self.configs])
        chosen: list[int] = []
        posterior = deepcopy(self._posterior)
        with one_thread():
            for _ in range(min(k, int((~taken).sum()))):
                values = np.append(self._values, np.zeros(len(chosen)))
                mean, deviation = posterior.predict(values, np.arange(len(values)) < self._n_observed)
                best = int(np.argmin(np.where(taken, np.inf, mean - DARING * deviation)))
                chosen.append(best)
                taken[best] = True
                posterior.add(self._n_observed + best)
        return tuple(self.configs[i] for i in chosen)

    def _fit(self, n_elsewhere: int, n_own: int) -> None:
        rng = np.random.default_rng(0)
        own = n_elsewhere + rng.choice(n_own, min(n_own, N_FIT), replace=False)
        others = rng.choice(n_elsewhere, min(n_elsewhere, N_FIT - len(own)), replace=False)
        rows = np.concatenate([own, others])
        squares = squared_differences(self._columns[rows], self._groups, self._hyper.n_groups)
        self._hyper.fit(squares, self._values[rows])


def expect(
    problem: Problem,
    neighbours: Sequence[Neighbour],
    enumeration: Enumeration,
    own: Mapping[Config, float] | None = None,
    fill: Fill | None = None,
) -> Expectation | None:
    """Predicts every allowed configuration of ``problem`` from ``neighbours``; None if they have no data.

    ``own``: medians in seconds that are known at the problem itself; they count, too.
    ``fill``: (a problem's fields, a neighbour's device or None for one's own, configurations) -> as occupancy().
    """
    fields = asdict(problem)
    elsewhere: list[TransferPoint] = []
    for n in neighbours:
        with suppress(Exception):  # another definition may have recorded what this one cannot launch
            elsewhere += _points(n.problem, n.device, AWAY[n.kinship], _some(n.measured), fill)
    if not elsewhere or not enumeration.configs:
        return None
    best = min((own or {}).values(), default=1.0)
    measured = [(config, median_s / best) for config, median_s in (own or {}).items()]
    here = _points(fields, None, 0.0, measured, fill)
    asked = _points(fields, None, 0.0, [(config, 0.0) for config in enumeration.configs], fill)
    return Expectation(elsewhere, here, asked)


def _points(
    fields: Mapping[str, object],
    device: Device | None,
    away: float,
    measured: Sequence[tuple[Config, float]],
    fill: Fill | None,
) -> list[TransferPoint]:
    configs = [config for config, _ in measured]
    rows = fill(fields, device, configs) if fill else np.zeros((len(configs), 0))
    return [TransferPoint(config, fields, away, row, time) for (config, time), row in zip(measured, rows, strict=True)]


def _standardized(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean()) / (values.std() + 1e-12))


def _coordinates(points: Sequence[TransferPoint]) -> tuple[np.ndarray, np.ndarray]:
    """Returns (columns, float [n_points, n_columns]; groups, int [n_columns], of columns that share a length scale)."""
    configs = list(dict.fromkeys(point.config for point in points))
    features = features_of(levels_of(configs))
    row_of = {config: row for row, config in enumerate(configs)}
    own = features.columns[[row_of[point.config] for point in points]]
    occupancy = np.array([point.occupancy for point in points])
    places, fields = _places([(point.fields, point.away) for point in points])
    filled = features.n_groups + np.arange(occupancy.shape[1])
    groups = np.concatenate([features.groups, filled, features.n_groups + len(filled) + fields])
    return np.hstack([own, occupancy, places]), groups


def _places(problems: Sequence[tuple[Mapping[str, object], float]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns (coordinates of problems in octaves, float [n_problems, n_columns]; which field each column is of)."""
    columns, fields = [np.array([away for _, away in problems])], [0]
    for number, name in enumerate(dict.fromkeys(name for given, _ in problems for name in given), 1):
        values = [_hashable(given.get(name)) for given, _ in problems]
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            columns.append(np.array([octave(float(v)) for v in values if v is not None]))
            fields.append(number)
        else:  # any two different words are MISMATCH apart
            words = list(dict.fromkeys(values))
            columns += [MISMATCH / 2**0.5 * np.array([v == word for v in values]) for word in words]
            fields += [number] * len(words)
    return np.array(columns).T, np.array(fields)


def _hashable(value: object) -> Any:
    """Returns lists (which records have instead of tuples) and objects as text."""
    if isinstance(value, (list, tuple)):
        return str(list(value))
    return str(value) if isinstance(value, dict) else value


def _some(measured: Sequence[tuple[Config, float]]) -> Sequence[tuple[Config, float]]:
    """Selects, from configurations ordered by time, the best and others spread over the rest."""
    rest = measured[N_BEST:]
    step = max(1, len(rest) // N_OTHERS)
    return [*measured[:N_BEST], *rest[::step][:N_OTHERS]]
