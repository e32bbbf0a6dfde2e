"""Predicts the times of a problem's configurations from recorded neighbours, to begin a search or to choose a config.

It is a Gaussian process over (configuration, problem): the times of one sweep, relative to its best, predict similar
configurations at near problems. The covariance of two points is the Matern covariance of the search (covariance.py) of
the coordinates of both configurations, of how their launches fill the device, and of the distance of both problems in
octaves; the weight of each is fitted. After Swersky, Snoek and Adams, Multi-Task Bayesian Optimization, NIPS 2013, with
the distance of the problems in place of a learned covariance of tasks.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..core.config import Config
from ..core.definition import Device
from ..core.enumeration import Enumeration
from ..core.problem import Problem, named_fields
from .coordinates import Coordinates, Domain, TransferPoint, coordinates
from .covariance import Hyperparameters, squared_differences
from .neighbour import AWAY, Neighbour
from .posterior import Posterior

CAP = 2.0  # relative times are capped here: how slow a slow config is carries no information about fast ones
N_BEST, N_OTHERS = 20, 12  # configurations of each neighbour: its best, and a sample of the others, best to worst
ROUNDS = ((200, 25), (450, 12))  # observations to which a search fits length scales, its own first; and steps
DARING = 0.5  # hints are ranked by the expected time minus so many standard deviations
CAUTION = 0.5  # choices that no trial will check are ranked by the expected time plus so many

T = TypeVar("T")
Fill = Callable[[Mapping[str, Any], Device | None, Sequence[Config]], np.ndarray]


@dataclass(frozen=True)
class Scales:
    """Values fitted to many problems: the weight of each group of coordinates, the noise and the amplitude, and the
    mean and the deviation of the logarithms of relative times.
    """

    weights: Mapping[str, float]
    noise: float
    amplitude: float
    mean: float
    deviation: float

    def standardized(self, points: Sequence[TransferPoint]) -> np.ndarray:
        """Returns the standardized logarithms of the points' relative times, float [n_points]."""
        return (logarithms(points) - self.mean) / (self.deviation + 1e-12)


class Expectation:
    """The prediction of the ``asked`` points from points ``elsewhere`` and the problem's ``own``.

    ``times``: the mean standardized logarithm for each, float [n_asked]. ``scales``: the scales in use.

    Args:
        domain: the values of each parameter.
        scales: scales that were fitted before; by default they are fitted to the points.
    """

    def __init__(
        self,
        elsewhere: Sequence[TransferPoint],
        own: Sequence[TransferPoint],
        asked: Sequence[TransferPoint],
        domain: Domain,
        scales: Scales | None = None,
    ) -> None:
        self.configs = [point.config for point in asked]
        observed = [*own, *elsewhere]
        self.scales = scales or fitted(observed, domain, ROUNDS, len(own))
        self._values = self.scales.standardized(observed)
        self._n_observed = len(observed)
        self._posterior = posterior_of(observed, asked, domain, self.scales)
        self.times = self._posterior.mean(self._values)

    def ranked(self, k: int) -> tuple[Config, ...]:
        """Returns the configuration to run without a trial, which has the least mean + CAUTION deviations, and the
        ``k`` - 1 that are worth a trial beside it, the most promising first.
        """
        mean, deviation = self._posterior.predict(self._values, np.ones(self._n_observed, bool))
        first = int(np.argmin(mean + CAUTION * deviation))
        taken = np.arange(len(self.configs)) == first
        return tuple(self.configs[i] for i in (first, *self._daring(k - 1, taken, [first])))

    def hints(self, k: int, known: Container[Config] = ()) -> tuple[Config, ...]:
        """Returns at most ``k`` configurations worth a trial, without ``known`` ones, the most promising first."""
        taken = np.array([config in known for config in self.configs])
        return tuple(self.configs[i] for i in self._daring(k, taken, []))

    def _daring(self, k: int, taken: np.ndarray, before: Sequence[int]) -> list[int]:
        """Returns the numbers of ``k`` configurations that are not ``taken``: those with the least mean - DARING
        deviations. When the next one is chosen, the outcomes of the chosen ones and of those ``before`` are assumed to
        equal their means, so that the configurations are not all alike.
        """
        chosen, taken = list(before), taken.copy()
        posterior = deepcopy(self._posterior)
        for row in before:
            posterior.add(self._n_observed + row)
        for _ in range(min(k, int((~taken).sum()))):
            values = np.append(self._values, np.zeros(len(chosen)))
            mean, deviation = posterior.predict(values, np.arange(len(values)) < self._n_observed)
            best = int(np.argmin(np.where(taken, np.inf, mean - DARING * deviation)))
            chosen.append(best)
            taken[best] = True
            posterior.add(self._n_observed + best)
        return chosen[len(before) :]


def expect(
    problem: Problem,
    neighbours: Sequence[Neighbour],
    enumeration: Enumeration,
    domain: Domain,
    own: Mapping[Config, float] | None = None,
    fill: Fill | None = None,
    scales: Scales | None = None,
) -> Expectation | None:
    """Returns the prediction of every allowed configuration of ``problem`` from ``neighbours``; None without data.

    ``domain``: the values of each parameter.
    ``own``: known medians, in seconds, at the problem itself, which are used as well.
    ``fill``: (a problem's fields, a neighbour's device or None for the own one, configurations) -> as occupancy().
    ``scales``: scales that were fitted before; by default they are fitted to these data.
    """
    fields = named_fields(problem)
    elsewhere: list[TransferPoint] = []
    for n in neighbours:
        with suppress(Exception):  # another definition may have recorded configs that this one cannot launch
            elsewhere += points_of(n.problem, n.device, AWAY[n.kinship], some(n.measured), fill)
    if not elsewhere or not enumeration.configs:
        return None
    best = min((own or {}).values(), default=1.0)
    measured = [(config, median_s / best) for config, median_s in (own or {}).items()]
    here = points_of(fields, None, 0.0, measured, fill)
    asked = points_of(fields, None, 0.0, [(config, 1.0) for config in enumeration.configs], fill)
    return Expectation(elsewhere, here, asked, domain, scales)


def points_of(
    fields: Mapping[str, object],
    device: Device | None,
    away: float,
    measured: Sequence[tuple[Config, float]],
    fill: Fill | None,
) -> list[TransferPoint]:
    """Returns the points of one problem on one device; ``measured``: configurations with relative times."""
    configs = [config for config, _ in measured]
    rows = fill(fields, device, configs) if fill else np.zeros((len(configs), 0))
    return [TransferPoint(config, fields, away, row, time) for (config, time), row in zip(measured, rows, strict=True)]


def some(measured: Sequence[T]) -> list[T]:
    """Returns, from items ordered by time, the best ones and others spread over the rest."""
    rest = measured[N_BEST:]
    step = max(1, len(rest) // N_OTHERS)
    return [*measured[:N_BEST], *rest[::step][:N_OTHERS]]


def logarithms(points: Sequence[TransferPoint]) -> np.ndarray:
    """Returns the logarithms of capped relative times, float [n_points]."""
    return np.asarray(np.log(np.minimum([point.time for point in points], CAP)))


def fitted(
    points: Sequence[TransferPoint], domain: Domain, rounds: Sequence[tuple[int, int]], n_own: int = 0
) -> Scales:
    """Returns scales fitted to points of many problems.

    ``rounds``: (number of points, steps) of each round. A round begins where the last one ended, since few points find
    a good start for many at low cost. The first ``n_own`` points are always among them, as far as there is room.
    """
    place: Coordinates = coordinates(points, domain)
    values = logarithms(points)
    mean, deviation = float(values.mean()), float(values.std())
    hyper = Hyperparameters(len(place.names))
    for n, n_steps in rounds:
        own, n_others = np.arange(min(n, n_own)), len(points) - n_own
        others = n_own + np.random.default_rng(0).choice(n_others, min(n_others, n - len(own)), replace=False)
        rows = np.concatenate([own, others])
        squares = squared_differences(place.columns[rows], place.groups, hyper.n_groups)
        hyper.fit(squares, (values[rows] - mean) / (deviation + 1e-12), n_steps)
    weights = dict(zip(place.names, map(float, hyper.weights), strict=True))
    return Scales(weights, float(np.exp(hyper.theta[-2])), hyper.amplitude, mean, deviation)


def posterior_of(
    observed: Sequence[TransferPoint], asked: Sequence[TransferPoint], domain: Domain, scales: Scales
) -> Posterior:
    """Returns the process conditioned on the ``observed`` points, with the ``asked`` points as its pool."""
    place = coordinates([*observed, *asked], domain)
    weights = [scales.weights.get(name, 0.0) for name in place.names]
    hyper = Hyperparameters.of(weights, scales.noise, scales.amplitude)
    n, n_all = len(observed), len(place.columns)
    return Posterior(place.columns, place.groups, hyper, range(n), np.arange(n, n_all))
