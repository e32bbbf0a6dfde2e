"""Computes how much each parameter matters: its share of the variance of the times, and the loss with each value.

The share is the main effect of functional ANOVA (Hutter, Hoos, Leyton-Brown: An Efficient Approach for Assessing
Hyperparameter Importance, ICML 2014), estimated directly from the measured trials, without a model: the variance of
log(median) between the parameter's values divided by the total variance, as epsilon squared (Kelley: An Unbiased
Correlation Ratio Measure, PNAS 21, 1935), which subtracts the share that as many groups of so few trials would explain
by chance. A share refers to the configs with the parameter. Shares need not add up to one: interactions do not belong
to a single parameter, and values that a search or a constraint combines explain the same variance.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from ..core.config import Value
from ..records.trial import Trial
from .coded import Coded, coded


@dataclass(frozen=True)
class ValueEffect:
    """The times of the configs with one value of a parameter.

    ``loss``: the best median with this value divided by the best of all configs with the parameter, minus 1.
    """

    value: Value
    n_trials: int
    best_s: float
    mean_s: float  # geometric mean
    loss: float


@dataclass(frozen=True)
class Importance:
    """One parameter. ``share`` is None if it cannot be estimated: with one value, or as many values as trials."""

    name: str
    share: float | None
    n_trials: int
    values: tuple[ValueEffect, ...]  # ordered by their best times, fastest first

    def as_json(self) -> dict[str, object]:
        return {
            "parameter": self.name,
            "share": self.share,
            "n_trials": self.n_trials,
            "values": [vars(effect) for effect in self.values],
        }


def importances(trials: Iterable[Trial]) -> tuple[Importance, ...]:
    """Returns all parameters of the measured trials, most important first; those without a share come last."""
    measured = [trial for trial in trials if trial.median_s]
    logs = np.log([trial.median_s or 1.0 for trial in measured])
    parameters = [_importance(name, each, logs) for name, each in coded(measured).items()]
    return tuple(sorted(parameters, key=lambda each: -1.0 if each.share is None else each.share, reverse=True))


def winners_first(parameters: Iterable[Importance], winner: Mapping[str, Value]) -> tuple[Importance, ...]:
    """Returns the winner's parameters, then the others, otherwise in their order; without a winner, all in order."""
    return tuple(sorted(parameters, key=lambda each: bool(winner) and each.name not in winner))


def marked_name(name: str, winner: Mapping[str, Value]) -> str:
    """Returns a parameter's name, with a star if the winner lacks it."""
    return name if not winner or name in winner else f"{name}*"


def _importance(name: str, parameter: Coded, logs: np.ndarray) -> Importance:
    """``logs``: float64 [n_trials], the logarithms of the medians."""
    groups = [logs[parameter.codes == code] for code in range(len(parameter.values))]
    best = min(float(group.min()) for group in groups)
    effects = [
        ValueEffect(
            value=value,
            n_trials=len(group),
            best_s=exp(group.min()),
            mean_s=exp(group.mean()),
            loss=exp(group.min() - best) - 1,
        )
        for value, group in zip(parameter.values, groups, strict=True)
    ]
    ordered = tuple(sorted(effects, key=lambda effect: effect.loss))
    return Importance(name, epsilon_squared(groups), sum(map(len, groups)), ordered)


def epsilon_squared(groups: Sequence[Sequence[float] | np.ndarray]) -> float | None:
    """Returns the share of variance between groups, corrected for their number (0 to 1; None if undefined)."""
    n, k = sum(map(len, groups)), len(groups)
    if k < 2 or n <= k:
        return None
    total = _squares(np.concatenate([np.asarray(group, np.float64) for group in groups]))
    if total == 0:
        return None
    within = sum(_squares(np.asarray(group, np.float64)) for group in groups)
    return max(0.0, 1 - (within / (n - k)) / (total / (n - 1)))


def _squares(group: np.ndarray) -> float:
    return float(np.sum((group - group.mean()) ** 2))
