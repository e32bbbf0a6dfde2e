"""The covariance of a Gaussian process over configs, and its hyperparameters by maximum a posteriori.

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


@dataclass(frozen=True)
class Prior:
    """Normal priors of the hyperparameters' logarithms, (mean, standard deviation)."""

    weight: tuple[float, float] = (
        -1.0,
        1.0,
    )  # one column alone reduces correlation to 0.90 across its whole range
    noise: tuple[float, float] = (
        -5.0,
        1.5,
    )  # variance, as a share of the observations' variance
    amplitude: tuple[float, float] = (0.0, 1.0)  # variance, as a share of the observations' variance


PRIOR = Prior()


def matern(r2: np.ndarray) -> np.ndarray:
    """Returns the correlation at squared distances ``r2``, in their precision; overwrites ``r2``."""
    s: np.ndarray = np.sqrt(r2, out=r2)
    s *= ROOT5
    decay = np.exp(-s)
    correlation: np.ndarray = s / 3.0
    correlation += 1.0
    correlation *= s
    correlation += 1.0
    correlation *= decay
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

    def __init__(self, n_groups: int, prior: Prior = PRIOR) -> None:
        self.n_groups = n_groups
        self._mean = np.array([*[prior.weight[0]] * n_groups, prior.noise[0], prior.amplitude[0]])
        self._precision = 1.0 / np.array([*[prior.weight[1]] * n_groups, prior.noise[1], prior.amplitude[1]]) ** 2
        self.theta = self._mean.copy()

    @staticmethod
    def of(weights: Sequence[float], noise: float, amplitude: float) -> "Hyperparameters":
        """Returns hyperparameters with these values; a group of weight 0 has no effect."""
        own = Hyperparameters(len(weights))
        own.theta = np.log(np.maximum([*weights, noise, amplitude], 1e-30))
        return own

    @property
    def weights(self) -> np.ndarray:
        """Returns the weights of the groups, float [n_groups]."""
        return np.asarray(np.exp(self.theta[: self.n_groups]))

    @property
    def noise(self) -> float:
        return float(np.exp(self.theta[-2])) + JITTER

    @property
    def amplitude(self) -> float:
        return float(np.exp(self.theta[-1]))

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
        weights2, noise, amplitude = (
            np.exp(2.0 * theta[:n_groups]),
            np.exp(theta[-2]),
            np.exp(theta[-1]),
        )
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
