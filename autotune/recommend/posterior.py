"""A Gaussian process that is conditioned on configs, predicts candidates, and grows by one config at a time.

The factor depends on the set of configs, not on their values. So a config is added when it is proposed, with the value
that the others predict for it (the kriging believer), and gets its real value when it arrives, in any order.
Ginsbourger, Le Riche and Carraro, Kriging is well-suited to parallelize optimization, 2010.
"""

import math
from collections.abc import Sequence

import numpy as np

from .covariance import Hyperparameters, matern

ROOM = 64  # spare rows; arrays are copied when they are used up


class Posterior:
    """The conditioned process. ``rows``: indices of the configs that condition it; ``pool``: indices of the candidates.

    ``columns``: features, float [n_configs, n_columns]. Arrays over the pool are in single precision.
    """

    def __init__(
        self,
        columns: np.ndarray,
        groups: np.ndarray,
        hyper: Hyperparameters,
        rows: Sequence[int],
        pool: np.ndarray,
    ) -> None:
        self.rows, self.pool = list(rows), pool
        self._noise, self._amplitude = hyper.noise, hyper.amplitude
        self._columns, self._scale = columns, hyper.weights[groups]
        self._known = columns[self.rows] * self._scale
        self._pooled = (columns[pool] * self._scale).astype(np.float32)
        n = len(self.rows)
        covariance = self._covariance(self._known, self._known)
        covariance.flat[:: n + 1] = self._amplitude + self._noise
        inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        # cross[k, c] = (factor^-1 covariance(rows, pool))[k, c]: its column determines a candidate's prediction
        cross = inverse.astype(np.float32) @ self._covariance(self._known.astype(np.float32), self._pooled)
        self._variance = self._amplitude - np.einsum("kc,kc->c", cross, cross)
        self._factor_inverse = np.zeros((n + ROOM, n + ROOM))
        self._factor_inverse[:n, :n] = inverse
        self._cross = np.empty((n + ROOM, len(pool)), np.float32)
        self._cross[:n] = cross

    def add(self, row: int) -> None:
        """Adds one config to the conditions; ``predict`` gets its value."""
        n = len(self.rows)
        if n == len(self._cross):
            self._grow()
        point = (self._columns[row] * self._scale)[None]
        inverse = self._factor_inverse[:n, :n]
        below = inverse @ self._covariance(self._known, point)[:, 0]
        corner = math.sqrt(max(self._amplitude + self._noise - float(below @ below), self._noise))
        cross = self._covariance(point.astype(np.float32), self._pooled)[0]
        cross -= below.astype(np.float32) @ self._cross[:n]
        cross /= corner
        self._cross[n] = cross
        self._variance -= cross * cross
        self._factor_inverse[n, :n] = -(below @ inverse) / corner
        self._factor_inverse[n, n] = 1.0 / corner
        self._known = np.concatenate([self._known, point])
        self.rows.append(row)

    def predict(self, values: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (mean, standard deviation) at the pool, without noise; uses ``values`` [n_rows] where ``known``."""
        return self.mean(self._believed(values, known)), np.sqrt(np.maximum(self._variance, 1e-8))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Returns the mean at the pool, given the values of all rows."""
        n = len(self.rows)
        solved = self._factor_inverse[:n, :n] @ values
        return np.asarray(solved.astype(np.float32) @ self._cross[:n])

    def believe(self, values: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (mean, standard deviation) of the rows that are not ``known``, without noise, given the known rows.

        It uses blocks of the covariance's inverse, which exists already, instead of a factor of the known rows alone:
        Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, the second form of equation A.6.
        """
        n = len(self.rows)
        inverse, unknown = self._factor_inverse[:n, :n], ~known
        precision = inverse[:, unknown].T @ inverse  # rows of the covariance's inverse, float [n_unknown, n]
        covariance = np.linalg.inv(precision[:, unknown])
        variance = np.diag(covariance) - self._noise
        return -covariance @ (precision[:, known] @ values[known]), np.sqrt(np.maximum(variance, 1e-8))

    def _believed(self, values: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Returns ``values`` with the unknown ones replaced by predictions from the known ones."""
        if known.all():
            return values
        filled = values.copy()
        filled[~known] = self.believe(values, known)[0]
        return filled

    def _covariance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Returns the covariance between rows of ``a`` and ``b``, [n_a, n_b], in their precision."""
        r2 = a @ (-2.0 * b.T)
        r2 += (a * a).sum(1)[:, None]
        r2 += (b * b).sum(1)[None, :]
        covariance = matern(np.maximum(r2, 0, out=r2))
        covariance *= self._amplitude
        return covariance

    def _grow(self) -> None:
        self._factor_inverse = np.pad(self._factor_inverse, (0, ROOM))
        self._cross = np.concatenate([self._cross, np.empty((ROOM, self._cross.shape[1]), np.float32)])
