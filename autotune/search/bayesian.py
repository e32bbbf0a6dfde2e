"""Bayesian optimization over the list of valid configs: a Gaussian process of log time with two acquisition functions.

They alternate: expected improvement (Jones, Schonlau and Welch, Efficient Global Optimization of Expensive Black-Box
Functions, 1998) and the lower confidence bound (Srinivas, Krause, Kakade and Seeger, Gaussian Process Optimization in
the Bandit Setting, 2010). Where most configs fail, a process of success and failure looks for the first success.
docs/design/search.md describes features, slow configs, failures and pending outcomes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.config import Config, Value
from ..core.errors import UsageError
from ..recommend.gaussian_process import Hyperparameters, Posterior, squared_differences
from ..system.one_thread import one_thread
from .features import features_of, levels_of
from .sampler import ListSampler, Request

ROOT_2PI = math.sqrt(2.0 * math.pi)
RARE = 6  # failures per success above which the search looks for successes; below, random configs explore better
LEAST_MODELLED = 3  # successes that a model of times needs at least


@dataclass(frozen=True)
class Limits:
    """Limits on the cost of a proposal, and on when the model starts and is fitted."""

    n_first: int = 10  # most configs before the model: the default, the hints and random ones
    first_share: int = 5  # these are at most 1/first_share of the budget
    n_fit: int = 128  # most observations for a fit of the hyperparameters
    n_model: int = 256  # most observations in a new model; later ones are added until the next fit
    n_pool: int = 12_000  # most candidates that the model scores
    n_drawn: int = 50  # random candidates; the most promising is tried where nearly all configs fail
    refit_share: int = 10  # refit after the observations have grown by 1/refit_share


class GaussianProcess(ListSampler):
    """Proposes random configs first (promising ones, where nearly all fail), then the configs that the model prefers.

    The model uses known and pending outcomes.

    With several objectives it models a new random combination of them each time: Knowles, ParEGO: a hybrid algorithm
    with on-line landscape approximation for expensive multiobjective optimization problems, 2006.
    """

    chooses, several = True, True

    def __init__(self, request: Request, limits: Limits = Limits()) -> None:
        super().__init__(request)
        self.limits = limits
        self.levels = levels_of(self.configs)
        with one_thread():
            self.features = features_of(self.levels, request.known)
        self.hyper = Hyperparameters(len(self.features.names))
        self.n_first = min(limits.n_first, max(4, self.budget // limits.first_share))
        self._posterior: Posterior | None = None
        self._counted: set[int] = set()  # rows that were offered to the posterior; it may have left some out
        self._n_known_then = 0  # number of known outcomes at the last fit
        self._n_asked = self._n_ranked = 0

    def choose(self) -> int:
        n_known = len(self.log_s) + len(self.failed)
        if len(self.log_s) < LEAST_MODELLED or n_known + len(self.pending) < self.n_first:
            return self._begin_with()
        self._n_asked += 1
        costs = self._costs()
        with one_thread():
            posterior = self._current(n_known, costs)
            has_cost, values = _values(posterior.rows, costs)
            score = _score(
                *posterior.predict(values, has_cost), values[has_cost].min(), by_bound=self._n_asked % 2 == 1
            )
            failed = self._failures(posterior.rows)
            if failed.any():  # a process of 0 and 1 with the same features: success is doubtful near failures
                score += _log_success(posterior.mean(failed))
        score[self.taken[posterior.pool]] = -np.inf
        best = int(posterior.pool[np.argmax(score)])
        return best if not self.taken[best] else self.any_open()  # the pool may have run dry

    def ranked(self, rows: Sequence[int]) -> list[int]:
        """Returns ``rows`` in the model's order of preference, by known outcomes only."""
        with one_thread():
            scores = self._scores_of_pending() if len(self.log_s) >= LEAST_MODELLED else self._prospects(rows)
        return sorted(rows, key=lambda row: -scores[row])

    def _scores_of_pending(self) -> dict[int, float]:
        """Returns the score of each pending config, computed like the scores in ``choose``."""
        self._n_ranked += 1
        costs = self._costs()
        posterior = self._current(len(self.log_s) + len(self.failed), costs)
        has_cost, values = _values(posterior.rows, costs)
        mean, deviation = posterior.believe(values, has_cost)
        score = _score(mean, deviation, values[has_cost].min(), by_bound=self._n_ranked % 2 == 1)
        scores = dict(zip((row for row in posterior.rows if row not in costs), score.tolist(), strict=True))
        failed = self._failures(posterior.rows)
        if failed.any():
            ended = np.array([row not in self.pending for row in posterior.rows])
            doubt = _log_success(posterior.believe(failed, ended)[0])
            for row, less in zip((row for row in posterior.rows if row in self.pending), doubt.tolist(), strict=True):
                scores[row] += less
        return scores

    def _begin_with(self) -> int:
        """Returns a random config; where nearly all have failed, the most promising of some random ones.

        While no config has succeeded, both alternate: the config farthest from failures may be a corner of the space,
        while the working configs lie in its middle.
        """
        n_taken = len(self.failed) + len(self.log_s) + len(self.pending)
        if len(self.failed) <= RARE * len(self.log_s) or (not self.log_s and n_taken % 2 == 0):
            return self.any_open()
        drawn = self._sample(self.open_rows(), self.limits.n_drawn)
        with one_thread():
            prospects = self._prospects(drawn.tolist())
        return max(prospects, key=prospects.__getitem__)

    def _prospects(self, rows: Sequence[int]) -> dict[int, float]:
        """Returns the distance of each of ``rows`` from all known configs, less its probability to fail.

        Both come from a process of 0 and 1 with default length scales, which are not fitted.
        """
        given = [
            *self._thinned(list(self.log_s), self.limits.n_model),
            *self._thinned(list(self.failed), self.limits.n_model),
        ]
        given += [row for row in self.pending if row not in rows]
        if not given:
            return dict.fromkeys(rows, 0.0)
        hyper = Hyperparameters(len(self.features.names))
        posterior = Posterior(self.features.columns, self.features.groups, hyper, given, np.array(rows))
        ended = np.array([row not in self.pending for row in given])
        mean, deviation = posterior.predict(self._failures(given), ended)
        return dict(zip(rows, (deviation - mean).tolist(), strict=True))

    def _failures(self, rows: Sequence[int]) -> np.ndarray:
        """Returns 1 for each of ``rows`` that failed, else 0, float [n_rows]."""
        return np.array([float(row in self.failed) for row in rows])

    def _costs(self) -> Mapping[int, float]:
        """Returns the values to model: logarithms of the objective, or a random combination of several objectives."""
        if len(self.signs) == 1:
            return self.log_s
        logs = np.array(list(self.logs.values()))
        shares = (logs - logs.min(axis=0)) / np.maximum(np.ptp(logs, axis=0), 1e-12)
        shares *= self.rng.dirichlet(np.ones(len(self.signs)))
        costs = shares.max(axis=1) + 0.05 * shares.sum(axis=1)  # the augmented Chebyshev norm
        return dict(zip(self.logs, costs.tolist(), strict=True))

    def _current(self, n_known: int, costs: Mapping[int, float]) -> Posterior:
        """Returns the posterior with all known and pending configs; after enough new outcomes it is fitted again."""
        posterior = self._posterior
        if posterior is None or n_known - self._n_known_then >= max(1, n_known // self.limits.refit_share):
            return self._rebuilt(n_known, costs)
        for row in (*costs, *self.failed, *self.pending):
            if row not in self._counted:
                self._counted.add(row)
                posterior.add(row)
        return posterior

    def _rebuilt(self, n_known: int, costs: Mapping[int, float]) -> Posterior:
        fastest = sorted(costs, key=costs.__getitem__)
        columns, groups = self.features.columns, self.features.groups
        fitted = self._thinned(fastest, self.limits.n_fit)
        squares = squared_differences(columns[fitted], groups, len(self.features.names))
        self.hyper.fit(squares, standardized(np.array([costs[row] for row in fitted])))
        rows = self._thinned(fastest, self.limits.n_model)
        rows += self._thinned(list(self.failed), self.limits.n_model // 4)
        rows += self.pending
        self._posterior = Posterior(columns, groups, self.hyper, rows, self._pool(fastest))
        self._counted = {*costs, *self.failed, *self.pending}
        self._n_known_then = n_known
        return self._posterior

    def _thinned(self, rows: Sequence[int], n: int) -> list[int]:
        """Returns at most ``n`` of ``rows``: half are the first ones, half a random choice of the others."""
        if len(rows) <= n:
            return list(rows)
        others = self.rng.choice(len(rows) - n // 2, n - n // 2, replace=False) + n // 2
        return [*rows[: n // 2], *(rows[i] for i in sorted(others))]

    def _pool(self, fastest: Sequence[int]) -> np.ndarray:
        """Returns the configs that the model scores: all, or random ones and the neighbours of the fastest three."""
        n_pool = self.limits.n_pool
        if self.n_configs <= n_pool:
            return np.arange(self.n_configs)
        parts = [self._sample(self.open_rows(), n_pool // 2)]
        for row in fastest[:3]:
            near = (self.levels.differences(row) <= 2) & ~self.taken
            parts.append(self._sample(np.flatnonzero(near), n_pool // 6))
        return np.unique(np.concatenate(parts))

    def _sample(self, rows: np.ndarray, n: int) -> np.ndarray:
        return rows if len(rows) <= n else self.rng.choice(rows, n, replace=False)


class ConfigSampler(GaussianProcess):
    """A sampler for an Optuna study whose trials are configs of a list, each at most once: Bayesian optimization.

        sampler = autotune.ConfigSampler([{"WGS": 64, "TILE": 2}, {"WGS": 128, "TILE": 1}, ...], seed=0)
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: seconds_of(sampler.suggest(trial)), n_trials=100)

    Args:
        configs: dicts of values by name; a parameter may occur in some of them only.
        seed: seed of the random numbers.
        budget: number of trials, if known; at most a fifth of them are random.
        known: further columns of the configs, by name, each with one number per config.
    """

    def __init__(
        self,
        configs: Iterable[Mapping[str, Value]],
        seed: int = 0,
        budget: int | None = None,
        known: Mapping[str, Sequence[float]] = {},
    ) -> None:
        listed = list(dict.fromkeys(map(Config, configs)))
        if not listed:
            raise UsageError("a ConfigSampler needs at least one config")
        columns = {name: np.asarray(column, float) for name, column in known.items()}
        super().__init__(Request(listed, budget, seed, columns))


def _values(rows: Sequence[int], costs: Mapping[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Returns which of ``rows`` have a cost, bool [n_rows], and standardized costs, float [n_rows], or 0."""
    has_cost = np.array([row in costs for row in rows])
    values = np.zeros(len(rows))
    values[has_cost] = standardized(np.array([costs[row] for row in rows if row in costs]))
    return has_cost, values


def _score(mean: np.ndarray, deviation: np.ndarray, best: float, by_bound: bool) -> np.ndarray:
    """Returns the score of each candidate; larger is better. ``best``: the least known value."""
    return np.asarray(deviation - mean) if by_bound else log_expected_improvement(best - mean, deviation)


def _log_success(failing: np.ndarray) -> np.ndarray:
    """Returns the logarithms of the probabilities of success, which are added to scores."""
    return np.asarray(np.log(np.clip(1.0 - failing, 0.01, 1.0)))


def standardized(log_s: np.ndarray) -> np.ndarray:
    """Returns the values with zero mean and unit variance, after compression of the slow half.

    Above the median, the distance to it is replaced by its logarithm in units of median - best. Exact values of slow
    configs say little about the fast ones, and would stretch the model.
    """
    middle = np.median(log_s)
    unit = middle - log_s.min() + 1e-9
    squeezed = np.minimum(log_s, middle) + unit * np.log1p(np.maximum(log_s - middle, 0.0) / unit)
    return np.asarray((squeezed - squeezed.mean()) / (squeezed.std() + 1e-12))


def log_expected_improvement(gain: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Returns log E[max(0, G)] for G normal with mean ``gain``; its asymptote where the value would underflow."""
    u = gain / deviation
    density = np.exp(-0.5 * u * u) / ROOT_2PI
    direct = np.log(np.maximum(u * normal_cdf(u) + density, 1e-300))
    far = -0.5 * u * u - math.log(ROOT_2PI) - 2.0 * np.log(np.maximum(-u, 1.0))
    return np.asarray(np.log(deviation) + np.where(u > -4.0, direct, far))


def normal_cdf(u: np.ndarray) -> np.ndarray:
    """Computes the normal CDF to 1e-7: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.17."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(u))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * u * u) / ROOT_2PI * series
    return np.asarray(np.where(u >= 0, 1.0 - tail, tail))
