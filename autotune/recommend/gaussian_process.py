"""A Gaussian process: its covariance, its hyperparameters by maximum a posteriori, and what it predicts.

Matern 5/2 over weighted distances of the feature columns, a weight per group of columns (automatic relevance
determination): r2 = sum over groups g of weight_g**2 * |x_g - y_g|**2. Rasmussen and Williams, Gaussian Processes
for Machine Learning, 2006, sections 4.2 and 5.4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ROOT5 = math.sqrt(5.0)
JITTER = 1e-6
N_STEPS = 12  # steps of a fit
ROOM = 64  # spare rows; arrays are copied when they are used up


@dataclass(frozen=True)
class Prior:
    """Normal priors of the hyperparameters' logarithms, (mean, standard deviation).

    Noise and amplitude are variances, as shares of the observations' variance.
    """

    weight: tuple[float, float] = (-1.0, 1.0)  # one column alone reduces correlation to 0.90 across its whole range
    noise: tuple[float, float] = (-5.0, 1.5)
    amplitude: tuple[float, float] = (0.0, 1.0)


def matern(r2: np.ndarray) -> np.ndarray:
    """Returns the correlation at squared distances ``r2``, in their precision; overwrites ``r2``."""
    s: np.ndarray = np.sqrt(r2, out=r2)  # it works in place, since a large pool then takes half the time
    s *= ROOT5
    correlation: np.ndarray = s / 3.0
    correlation += 1.0
    correlation *= s
    correlation += 1.0
    correlation *= np.exp(-s)
    return correlation


def matern_and_slope(r2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the correlation and its derivative with respect to r2."""
    s = ROOT5 * np.sqrt(r2)
    decay = np.exp(-s)
    return (1.0 + s + s * s / 3.0) * decay, (-5.0 / 6.0) * (1.0 + s) * decay


def squared_differences(columns: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Returns |x_g - y_g|**2 for each group and pair of rows, float [n_groups, n, n]."""
    n = len(columns)
    squares = np.zeros((n_groups, n, n))
    for column, group in zip(columns.T, groups, strict=True):
        squares[group] += (column[:, None] - column[None, :]) ** 2
    return squares


class Hyperparameters:
    """The hyperparameters. ``theta``: the logarithms of the groups' weights, of the noise and of the amplitude.

    The first fit starts at the prior's mean, and each other one where the last one ended.
    """

    def __init__(self, n_groups: int, prior: Prior = Prior()) -> None:
        self.n_groups = n_groups
        self._mean = np.array([*[prior.weight[0]] * n_groups, prior.noise[0], prior.amplitude[0]])
        self._precision = 1.0 / np.array([*[prior.weight[1]] * n_groups, prior.noise[1], prior.amplitude[1]]) ** 2
        self.theta = self._mean.copy()

    def fit(self, squares: np.ndarray, y: np.ndarray, n_steps: int = N_STEPS) -> None:
        """Maximises the posterior density of theta by BFGS. ``squares`` [n_groups, n, n]; ``y`` [n], centred."""
        theta = self.theta
        value, slope = self.loss(theta, squares, y)
        inverse_hessian = np.eye(len(theta)) / max(1.0, float(np.abs(slope).max()))
        for _ in range(n_steps):
            step = -inverse_hessian @ slope
            step *= min(1.0, 1.5 / float(np.abs(step).max() + 1e-12))  # largest factor per step: e**1.5
            descent = float(slope @ step)
            if descent > -1e-4:
                break
            for _ in range(6):
                new_value, new_slope = self.loss(theta + step, squares, y)
                if new_value <= value + 1e-4 * descent:
                    break
                step, descent = 0.4 * step, 0.4 * descent
            else:
                break
            bend = new_slope - slope
            theta, value, slope = theta + step, new_value, new_slope
            curvature = float(step @ bend)
            if curvature > 1e-10:
                left = np.eye(len(theta)) - np.outer(step, bend) / curvature
                inverse_hessian = left @ inverse_hessian @ left.T + np.outer(step, step) / curvature
        self.theta = theta

    def loss(self, theta: np.ndarray, squares: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the negative log posterior density of ``theta``, up to a constant, and its gradient."""
        n_groups = self.n_groups
        weights2, noise, amplitude = np.exp(2.0 * theta[:n_groups]), np.exp(theta[-2]), np.exp(theta[-1])
        correlation, by_r2 = matern_and_slope(np.tensordot(weights2, squares, 1))
        covariance = amplitude * correlation
        covariance.flat[:: len(y) + 1] += noise + JITTER
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros_like(theta)
        factor_inverse = np.linalg.inv(factor)
        inverse = factor_inverse.T @ factor_inverse
        solved = inverse @ y
        off = theta - self._mean
        value = 0.5 * float(y @ solved) + float(np.log(np.diag(factor)).sum())
        value += 0.5 * float(self._precision @ (off * off))
        by_covariance = inverse - np.outer(solved, solved)  # twice the derivative of the likelihood's part
        slope = self._precision * off
        slope[:n_groups] += weights2 * np.tensordot(squares, by_covariance * by_r2 * amplitude, 2)
        slope[-2] += 0.5 * float(noise) * float(np.trace(by_covariance))
        slope[-1] += 0.5 * float(amplitude) * float((by_covariance * correlation).sum())
        return value, slope


class Posterior:
    """A process that is conditioned on configs, predicts candidates, and grows by one config at a time.

    The factor depends on the set of configs, not on their values. So a config is added when it is proposed, with the
    value that the others predict for it (the kriging believer), and gets its real value when it arrives, in any order.
    Ginsbourger, Le Riche and Carraro, Kriging is well-suited to parallelize optimization, 2010.

    ``rows``: indices of the configs that condition it; ``pool``: indices of the candidates. ``columns``: features,
    float [n_configs, n_columns]. Arrays over the pool are in single precision.
    """

    def __init__(
        self, columns: np.ndarray, groups: np.ndarray, hyper: Hyperparameters, rows: Sequence[int], pool: np.ndarray
    ) -> None:
        self.rows, self.pool = list(rows), pool
        self._noise, self._amplitude = float(np.exp(hyper.theta[-2])) + JITTER, float(np.exp(hyper.theta[-1]))
        self._columns, self._scale = columns, np.exp(hyper.theta[: hyper.n_groups])[groups]
        self._known = columns[self.rows] * self._scale
        self._pooled = (columns[pool] * self._scale).astype(np.float32)
        n = len(self.rows)
        covariance = self._covariance(self._known, self._known)
        covariance.flat[:: n + 1] = self._amplitude + self._noise
        inverse = np.linalg.inv(np.linalg.cholesky(covariance))
        # cross[k, c] = (factor^-1 covariance(rows, pool))[k, c]: its column determines a candidate's prediction
        cross = inverse.astype(np.float32) @ self._covariance(self._known.astype(np.float32), self._pooled)
        self._variance = self._amplitude - np.einsum("kc,kc->c", cross, cross)
        self._factor_inverse = np.pad(inverse, (0, ROOM))
        self._cross = np.concatenate([cross, np.empty((ROOM, len(pool)), np.float32)])

    def add(self, row: int) -> None:
        """Adds one config to the conditions; ``predict`` gets its value."""
        n = len(self.rows)
        if n == len(self._cross):
            self._factor_inverse = np.pad(self._factor_inverse, (0, ROOM))
            self._cross = np.concatenate([self._cross, np.empty((ROOM, len(self.pool)), np.float32)])
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
        """Returns (mean, standard deviation) at the pool, without noise; uses ``values`` [n_rows] where ``known``.

        Where they are not, it uses predictions from the known ones.
        """
        if not known.all():
            values = values.copy()
            values[~known] = self.believe(values, known)[0]
        return self.mean(values), np.sqrt(np.maximum(self._variance, 1e-8))

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

    def _covariance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Returns the covariance between rows of ``a`` and ``b``, [n_a, n_b], in their precision."""
        r2 = a @ (-2.0 * b.T)
        r2 += (a * a).sum(1)[:, None]
        r2 += (b * b).sum(1)
        covariance = matern(np.maximum(r2, 0, out=r2))
        covariance *= self._amplitude
        return covariance
