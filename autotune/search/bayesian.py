"""Bayesian optimization over the list of valid configs: a Gaussian process of log time, asked in two ways by turns.

Expected improvement (Jones, Schonlau and Welch, Efficient Global Optimization of Expensive Black-Box Functions, 1998)
and the lower confidence bound (Srinivas, Krause, Kakade and Seeger, Gaussian Process Optimization in the Bandit
Setting, 2010). docs/design/search.md tells the rest: features, slow configs, failures, outcomes that are outstanding.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

from .base import Listed, Request
from .features import features_of, levels_of
from .kernel import Hyperparameters, squared_differences
from .posterior import Posterior

ROOT_2PI = math.sqrt(2.0 * math.pi)
_libraries = ThreadpoolController()  # the BLAS among them; made once, since it looks through all of the process
_blas = _libraries.select(user_api="blas").lib_controllers
_at_work = Lock()  # a second search of the process waits, rather than set the number of threads meanwhile


@contextmanager
def one_thread() -> Iterator[None]:
    """Run linear algebra on one thread: compile processes use the other cores, and a call waits for its last thread."""
    if all(library.num_threads == 1 for library in _blas):  # a campaign's workers have set it so: nothing to do
        yield
        return
    with _at_work, _libraries.limit(limits=1, user_api="blas"):
        yield


@dataclass(frozen=True)
class Limits:
    """Limits on the cost of a proposal, and on when the model starts and is fitted."""

    n_first: int = 10  # configs before the model, at most: the default, the hints and random ones
    first_share: int = 5  # these are also at most this fraction (1/n) of the budget
    n_fit: int = 128  # observations that the hyperparameters are fitted to
    n_model: int = 256  # observations that the model is built on; those that follow until the next fit come on top
    n_pool: int = 12_000  # candidates that the model is asked about
    refit_share: int = 10  # refit after the observations have grown by this fraction (1/n)


class GaussianProcess(Listed):
    """Proposes random configs first, then what the model prefers, given known and pending outcomes."""

    def __init__(self, request: Request, limits: Limits = Limits()) -> None:
        super().__init__(request)
        self.limits = limits
        self.levels = levels_of(self.configs)
        with one_thread():
            self.features = features_of(self.levels, request.known)
        self.hyper = Hyperparameters(self.features.n_groups)
        self.n_first = min(limits.n_first, max(4, self.budget // limits.first_share))
        self._posterior: Posterior | None = None
        self._counted: set[int] = set()  # rows that the posterior has, or had to leave out
        self._n_known_then = 0  # number of known outcomes at the last fit
        self._n_asked = 0

    def choose(self) -> int:
        n_known = len(self.log_s) + len(self.failed)
        if len(self.log_s) < 3 or n_known + len(self.pending) < self.n_first:
            return self.any_open()
        self._n_asked += 1
        with one_thread():
            posterior = self._current(n_known)
            score = self._score(posterior, by_bound=self._n_asked % 2 == 1)
        score[self.taken[posterior.pool]] = -np.inf
        best = int(posterior.pool[np.argmax(score)])
        return best if not self.taken[best] else self.any_open()  # the pool may have run dry

    def _score(self, posterior: Posterior, by_bound: bool) -> np.ndarray:
        """Returns how promising each candidate of the pool is; larger is better."""
        rows = posterior.rows
        known = np.array([row in self.log_s for row in rows])
        values = np.zeros(len(rows))
        values[known] = standardized(np.array([self.log_s[row] for row in rows if row in self.log_s]))
        mean, deviation = posterior.predict(values, known)
        gain = values[known].min() - mean
        score: np.ndarray = deviation - mean if by_bound else log_expected_improvement(gain, deviation)
        failed = np.array([float(row in self.failed) for row in rows])
        if failed.any():  # the same process of 0 and 1: near failures, success is doubtful
            score += np.log(np.clip(1.0 - posterior.mean(failed), 0.01, 1.0))
        return score

    def _current(self, n_known: int) -> Posterior:
        """Returns the posterior given all that is known or pending, fitted again after enough new outcomes."""
        posterior = self._posterior
        if posterior is None or n_known - self._n_known_then >= max(1, n_known // self.limits.refit_share):
            return self._rebuilt(n_known)
        for row in (*self.log_s, *self.failed, *self.pending):
            if row not in self._counted:
                self._counted.add(row)
                posterior.add(row)
        return posterior

    def _rebuilt(self, n_known: int) -> Posterior:
        fastest = sorted(self.log_s, key=self.log_s.__getitem__)
        columns, groups = self.features.columns, self.features.groups
        fitted = self._thinned(fastest, self.limits.n_fit)
        squares = squared_differences(columns[fitted], groups, self.features.n_groups)
        self.hyper.fit(squares, standardized(np.array([self.log_s[row] for row in fitted])))
        rows = self._thinned(fastest, self.limits.n_model)
        rows += self._thinned(list(self.failed), self.limits.n_model // 4)
        rows += self.pending
        self._posterior = Posterior(columns, groups, self.hyper, rows, self._pool(fastest))
        self._counted = {*self.log_s, *self.failed, *self.pending}
        self._n_known_then = n_known
        return self._posterior

    def _thinned(self, rows: Sequence[int], n: int) -> list[int]:
        """Returns at most ``n`` of ``rows``: half are the first ones, half a random choice of the others."""
        if len(rows) <= n:
            return list(rows)
        others = self.rng.choice(len(rows) - n // 2, n - n // 2, replace=False) + n // 2
        return [*rows[: n // 2], *(rows[i] for i in sorted(others))]

    def _pool(self, fastest: Sequence[int]) -> np.ndarray:
        """Returns the configs that the model scores: all, or some at random and what is like the fastest three."""
        n_pool = self.limits.n_pool
        if self.n_configs <= n_pool:
            return np.arange(self.n_configs)
        parts = [self._some(self.open_rows(), n_pool // 2)]
        for row in fastest[:3]:
            near = (self.levels.differences(row) <= 2) & ~self.taken
            parts.append(self._some(np.flatnonzero(near), n_pool // 6))
        return np.unique(np.concatenate(parts))

    def _some(self, rows: np.ndarray, n: int) -> np.ndarray:
        return rows if len(rows) <= n else self.rng.choice(rows, n, replace=False)


def standardized(log_s: np.ndarray) -> np.ndarray:
    """Scales to zero mean and unit variance, after the slow half has been compressed.

    Above the median, the distance to it is replaced by its logarithm in units of median - best: how slow the slow
    ones are says little about the fast ones, and would stretch the model.
    """
    middle = np.median(log_s)
    unit = middle - log_s.min() + 1e-9
    squeezed = np.minimum(log_s, middle) + unit * np.log1p(np.maximum(log_s - middle, 0.0) / unit)
    return np.asarray((squeezed - squeezed.mean()) / (squeezed.std() + 1e-12))


def log_expected_improvement(gain: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """log of E[max(0, G)] for G normal with mean ``gain``; its asymptote where the value itself would underflow."""
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
