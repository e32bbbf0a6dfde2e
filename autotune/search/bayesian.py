"""Bayesian optimization over the list of valid configs: a Gaussian process of log time, expected improvement.

Jones, Schonlau and Welch, Efficient Global Optimization of Expensive Black-Box Functions, 1998. What is ours is told in
docs/search.md: the features, the compressed slow half, failures, and what happens while outcomes are outstanding.
"""

import math
from dataclasses import dataclass

import numpy as np

from .base import Listed, Request
from .features import features_of, levels_of
from .kernel import Hyperparameters, Prior, squared_differences
from .posterior import Posterior

ROOT_2PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Options:
    """How the model is used; the defaults were chosen as docs/search.md tells."""

    n_first: int = 10  # random configs before the model, at most
    n_fit: int = 128  # observations that the hyperparameters are fitted to
    n_model: int = 256  # observations that the model knows
    n_pool: int = 12_000  # candidates it is asked about
    prior: Prior = Prior()
    refit: tuple[int, int] = (30, 5)
    product_shift: float = 0.0
    soft: float = 1.0
    xi: float = 0.0
    acq: str = "ei"
    products: bool = True


class GaussianProcess(Listed):
    """``gp``."""

    def __init__(self, request: Request, options: Options = Options()) -> None:
        super().__init__(request)
        self.options = options
        self.levels = levels_of(self.configs)
        self.features = features_of(self.levels)
        if not options.products:
            keep = [k for k, n in enumerate(self.features.names) if " * " not in n]
            from .features import Features

            m = np.isin(self.features.groups, keep)
            self.features = Features(
                np.ascontiguousarray(self.features.columns[:, m]),
                np.searchsorted(keep, self.features.groups[m]),
                tuple(self.features.names[k] for k in keep),
            )
        self.hyper = Hyperparameters(self.features.n_groups, options.prior)
        if options.product_shift:
            for k, n in enumerate(self.features.names):
                if " * " in n:
                    self.hyper._mean[k] += options.product_shift
            self.hyper.theta = self.hyper._mean.copy()
        self._posterior: Posterior | None = None
        self._fitted_at = 0

    def choose(self) -> int:
        n_known = len(self.log_s) + len(self.failed)
        first = min(self.options.n_first, max(4, self.budget // 5))
        if len(self.log_s) < 3 or n_known + len(self.pending) < first:
            return self.any_open()
        posterior = self._current(n_known)
        rows = posterior.rows
        known = np.array([row in self.log_s for row in rows])
        values = np.array([self.log_s.get(row, 0.0) for row in rows])
        values[known] = standardized(values[known], self.options.soft)
        mean, deviation = posterior.predict(values, known)
        best = values[known].min()
        if self.options.acq == "lcb":
            score = -(mean - deviation)
        else:
            score = log_expected_improvement(best - self.options.xi - mean, deviation)
        failed = np.array([float(row in self.failed) for row in rows])
        if failed.any():
            score += np.log(np.clip(1.0 - posterior.mean(failed), 0.01, 1.0))
        score[self.taken[posterior.pool]] = -np.inf
        return int(posterior.pool[np.argmax(score)])

    def _current(self, n_known: int) -> Posterior:
        """The posterior of all that is known or pending, fitted anew when enough has come since the last fit."""
        posterior = self._posterior
        if posterior is not None and n_known - self._fitted_at < (
            1 if n_known < self.options.refit[0] else self.options.refit[1]
        ):
            there = set(posterior.rows)
            new = [row for row in (*self.log_s, *self.failed, *self.pending) if row not in there]
            for row in new:
                posterior.add(row)
            return posterior
        self._fitted_at = n_known
        rows = self._chosen()
        best = sorted((r for r in rows if r in self.log_s), key=self.log_s.__getitem__)
        fit_rows = self._thin(best, self.options.n_fit)
        columns, groups = self.features.columns, self.features.groups
        y = standardized(np.array([self.log_s[r] for r in fit_rows]), self.options.soft)
        self.hyper.fit(squared_differences(columns[fit_rows], groups, self.features.n_groups), y)
        room = len(rows) + len(self.pending) + 64
        self._posterior = Posterior(columns, groups, self.hyper, rows, self._pool(best), room)
        return self._posterior

    def _chosen(self) -> list[int]:
        best = sorted(self.log_s, key=self.log_s.__getitem__)
        rows = self._thin(best, self.options.n_model) + self._thin(list(self.failed), self.options.n_model // 4)
        return rows + list(self.pending)

    def _thin(self, rows: list[int], n: int) -> list[int]:
        """At most ``n`` of ``rows``: the first half of them, and a random choice of the others."""
        if len(rows) <= n:
            return rows
        rest = self.rng.choice(len(rows) - n // 2, n - n // 2, replace=False) + n // 2
        return rows[: n // 2] + [rows[i] for i in sorted(rest)]

    def _pool(self, best: list[int]) -> np.ndarray:
        """Open configs to be asked about: all, or a random choice and all neighbours of the best."""
        if self.n_configs <= self.options.n_pool:
            return np.arange(self.n_configs)
        near = [np.flatnonzero((self.levels.differences(row) <= 2) & ~self.taken) for row in best[:3]]
        near = [
            a if len(a) < self.options.n_pool // 6 else self.rng.choice(a, self.options.n_pool // 6, replace=False)
            for a in near
        ]
        some = self.rng.choice(
            self.open_rows(), min(self.options.n_pool // 2, self.n_configs - self._n_taken), replace=False
        )
        return np.unique(np.concatenate([some, *near]))


def standardized(log_s: np.ndarray, soft: float = 1.0) -> np.ndarray:
    """Zero mean, unit variance, after the slow half has been compressed.

    Above the median the distance to it grows as its logarithm, in units of median - best: how slow the slow ones are
    says little about the fast ones, and would stretch the model.
    """
    middle = np.median(log_s)
    unit = soft * (middle - log_s.min()) + 1e-9
    beyond = np.maximum(log_s - middle, 0.0)
    squeezed = np.minimum(log_s, middle) + unit * np.log1p(beyond / unit)
    return np.asarray((squeezed - squeezed.mean()) / (squeezed.std() + 1e-12))


def log_expected_improvement(gain: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """log of E[max(0, G)] for G normal with mean ``gain``; its asymptote where the value itself would underflow."""
    u = gain / deviation
    density = np.exp(-0.5 * u * u) / ROOT_2PI
    direct = np.log(np.maximum(u * normal_cdf(u) + density, 1e-300))
    far = -0.5 * u * u - math.log(ROOT_2PI) - 2.0 * np.log(np.maximum(-u, 1.0))
    return np.asarray(np.log(deviation) + np.where(u > -4.0, direct, far))


def normal_cdf(u: np.ndarray) -> np.ndarray:
    """To 1e-7: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.17."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(u))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * u * u) / ROOT_2PI * series
    return np.asarray(np.where(u >= 0, 1.0 - tail, tail))
