"""What recorded neighbours let one expect of each configuration of a problem: where a search had better begin.

A Gaussian process over (configuration, problem): times of one sweep, relative to its best, say something of a like
configuration at a near problem. Two points correlate by the Matern covariance of the search (search.kernel), over the
features of both configurations, how their launches fill the device, and the octaves between both problems. After
Swersky, Snoek and Adams, Multi-Task Bayesian Optimization, NIPS 2013, with the distance of the problems in place of a
learned covariance of tasks.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..definition import Device
from ..search.features import features_of, levels_of
from ..search.kernel import matern
from ..space import Config, Enumeration
from .neighbours import AWAY, MISMATCH, Neighbour, octave

PER_FEATURE = 0.5  # weight of a configuration's features, each of which goes from 0 to 1
PER_OCTAVE = 0.3  # weight of an octave between two problems
PER_FILLING = np.array([0.1, 0.5, 0.1])  # weights of an octave of filling.COLUMNS
NOISE = 0.01  # variance of an observation, as a share of that of all
CAP = 2.0  # relative time above which a configuration is only slow: how slow tells nothing of the fast ones
N_BEST, N_OTHERS = 20, 12  # configurations of each neighbour: its best, and some from the best to the worst of the rest

Fill = Callable[[Mapping[str, Any], Device | None, Sequence[Config]], np.ndarray]


@dataclass(frozen=True)
class Point:
    """A configuration at a problem: its problem's fields, the octaves that its device is away, how its launch fills it,
    and its time relative to the best.
    """

    config: Config
    fields: Mapping[str, Any]
    away: float
    filling: np.ndarray
    time: float


def hints(
    problem: Any,
    neighbours: Sequence[Neighbour],
    enumeration: Enumeration,
    k: int,
    own: Mapping[Config, float] | None = None,
    fill: Fill | None = None,
) -> tuple[Config, ...]:
    """At most k allowed configurations that are expected to be fast at ``problem``, the fastest first.

    ``own``: medians in seconds that are known at the problem itself; they count, and are not proposed again.
    ``fill``: (a problem's fields, a neighbour's device or None for one's own, configurations) -> as filling.filling().
    """
    own = own or {}
    candidates = [config for config in enumeration.configs if config not in own]
    if k < 1 or not candidates or not any(n.measured for n in neighbours):
        return ()
    fields = asdict(problem)
    points: list[Point] = []
    for n in neighbours:
        with suppress(Exception):  # another definition may have recorded what this one cannot launch
            points += _points(n.problem, n.device, AWAY[n.kinship], _some(n.measured), fill)
    if own:
        best = min(own.values())
        points += _points(fields, None, 0.0, [(c, median_s / best) for c, median_s in own.items()], fill)
    asked = _points(fields, None, 0.0, [(c, 0.0) for c in candidates], fill)
    if not points:
        return ()
    expected = _expected(points, asked)
    return tuple(candidates[i] for i in np.argsort(expected, kind="stable")[:k])


def _points(
    fields: Mapping[str, Any],
    device: Device | None,
    away: float,
    measured: Sequence[tuple[Config, float]],
    fill: Fill | None,
) -> list[Point]:
    configs = [config for config, _ in measured]
    rows = fill(fields, device, configs) if fill else np.zeros((len(configs), 0))
    return [Point(config, fields, away, row, time) for (config, time), row in zip(measured, rows, strict=True)]


def _expected(points: Sequence[Point], asked: Sequence[Point]) -> np.ndarray:
    """The process's mean at each of ``asked``, float [n_asked], in units in which only their order means anything."""
    everywhere = [*points, *asked]
    configs = list(dict.fromkeys(point.config for point in everywhere))
    features = dict(zip(configs, PER_FEATURE * features_of(levels_of(configs)).columns, strict=True))
    filling = np.array([point.filling for point in everywhere])
    coordinates = np.hstack(
        [
            np.array([features[point.config] for point in everywhere]),
            filling * PER_FILLING[: filling.shape[1]],
            PER_OCTAVE * _places([(point.fields, point.away) for point in everywhere]),
        ]
    )
    known, unknown = coordinates[: len(points)], coordinates[len(points) :]
    values = np.log(np.minimum([point.time for point in points], CAP))
    covariance = _covariance(known, known)
    covariance.flat[:: len(points) + 1] += NOISE
    mean = _covariance(unknown, known) @ np.linalg.solve(covariance, values - values.mean())
    return np.asarray(mean)


def _places(problems: Sequence[tuple[Mapping[str, Any], float]]) -> np.ndarray:
    """Coordinates of problems in octaves, float [n_problems, n_columns]."""
    columns = [np.array([away for _, away in problems])]
    for name in dict.fromkeys(name for fields, _ in problems for name in fields):
        values = [fields.get(name) for fields, _ in problems]
        if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            columns.append(np.array([octave(float(v)) for v in values if v is not None]))
        else:  # any two different words are MISMATCH apart
            columns += [MISMATCH / 2**0.5 * np.array([v == word for v in values]) for word in dict.fromkeys(values)]
    return np.array(columns).T


def _covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r2 = a @ (-2.0 * b.T) + (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :]
    return matern(np.maximum(r2, 0.0))


def _some(measured: Sequence[tuple[Config, float]]) -> Sequence[tuple[Config, float]]:
    """Of configurations in the order of their times: the best, and others spread over the rest."""
    rest = measured[N_BEST:]
    step = max(1, len(rest) // N_OTHERS)
    return [*measured[:N_BEST], *rest[::step][:N_OTHERS]]
