"""What recorded neighbours let one expect of each configuration of a problem: where a search had better begin.

A Gaussian process over (configuration, problem): times of one sweep, relative to its best, say something of a like
configuration at a near problem. Two points correlate by the Matern covariance of the search (search.kernel), over the
features of both configurations and the octaves between both problems. After Swersky, Snoek and Adams, Multi-Task
Bayesian Optimization, NIPS 2013, with the distance of the problems in place of a learned covariance of tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..search.features import features_of, levels_of
from ..search.kernel import matern
from ..space import Config, Enumeration
from .neighbours import AWAY, MISMATCH, Neighbour, octave

PER_FEATURE = 0.5  # weight of a configuration's features, each of which goes from 0 to 1
PER_OCTAVE = 0.3  # weight of an octave between two problems
NOISE = 0.01  # variance of an observation, as a share of that of all
CAP = 2.0  # relative time above which a configuration is only slow: how slow tells nothing of the fast ones
N_BEST, N_OTHERS = 20, 12  # configurations of each neighbour: its best, and some from the best to the worst of the rest


def hints(
    problem: Any,
    neighbours: Sequence[Neighbour],
    enumeration: Enumeration,
    k: int,
    own: Mapping[Config, float] | None = None,
) -> tuple[Config, ...]:
    """At most k allowed configurations that are expected to be fast at ``problem``, the fastest first.

    ``own``: medians in seconds that are known at the problem itself; they count, and are not proposed again.
    """
    own = own or {}
    candidates = [config for config in enumeration.configs if config not in own]
    if k < 1 or not candidates or not any(n.measured for n in neighbours):
        return ()
    fields = asdict(problem)
    points = [(c, n.problem, AWAY[n.kinship], t) for n in neighbours for c, t in _some(n.measured)]
    if own:
        best = min(own.values())
        points += [(c, fields, 0.0, median_s / best) for c, median_s in own.items()]
    expected = _expected(points, candidates, fields)
    return tuple(candidates[i] for i in np.argsort(expected, kind="stable")[:k])


def _expected(
    points: Sequence[tuple[Config, Mapping[str, Any], float, float]],
    candidates: Sequence[Config],
    fields: Mapping[str, Any],
) -> np.ndarray:
    """The process's mean at each candidate, float [n_candidates], in units in which only their order means anything.

    ``points``: (configuration, its problem's fields, octaves that its device is away, relative time).
    """
    configs = list(dict.fromkeys([*(c for c, *_ in points), *candidates]))
    features = dict(zip(configs, PER_FEATURE * features_of(levels_of(configs)).columns, strict=True))
    places = PER_OCTAVE * _places([*((p, away) for _, p, away, _ in points), (fields, 0.0)])
    known = np.hstack([np.array([features[c] for c, *_ in points]), places[:-1]])
    asked = np.hstack([np.array([features[c] for c in candidates]), np.tile(places[-1], (len(candidates), 1))])
    values = np.log(np.minimum([t for *_, t in points], CAP))
    covariance = _covariance(known, known)
    covariance.flat[:: len(points) + 1] += NOISE
    mean = _covariance(asked, known) @ np.linalg.solve(covariance, values - values.mean())
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
