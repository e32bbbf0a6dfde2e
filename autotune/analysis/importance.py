"""Computes how much each parameter matters: its share of the spread of the measured times, and what each value costs.

The share is the main effect of functional ANOVA (Hutter, Hoos, Leyton-Brown: An Efficient Approach for Assessing
Hyperparameter Importance, ICML 2014), estimated from the measured trials themselves, without a model between: the
variance of log(median) between the parameter's values over the whole variance, as epsilon squared (Kelley: An Unbiased
Correlation Ratio Measure, PNAS 21, 1935), which takes off what as many groups of so few trials would explain by
chance. A share is of the configs that have the parameter; shares need not add up to one: interactions belong to no
single parameter, and values that a search or a constraint brings together share what they explain.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from ..core.config import Value, merged_order
from ..records.trial import Trial


@dataclass(frozen=True)
class ValueEffect:
    """One value of a parameter: what the configs that have it reach.

    ``loss`` is the best median with this value over the best of all configs that have the parameter, less one.
    """

    value: Value
    n_trials: int
    best_s: float
    mean_s: float  # geometric mean
    loss: float


@dataclass(frozen=True)
class Importance:
    """One parameter. ``share`` is None where it cannot be estimated: one value only, or as many values as trials."""

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
    """Returns every parameter of the measured trials, most important first; those without a share come last."""
    measured = [trial for trial in trials if trial.median_s]
    found = [_importance(name, measured) for name in merged_order(trial.config for trial in measured)]
    return tuple(sorted(found, key=lambda each: -1.0 if each.share is None else each.share, reverse=True))


def winners_first(found: Iterable[Importance], winner: Mapping[str, Value]) -> tuple[Importance, ...]:
    """Returns the parameters of the winner's config in their order, then the others; all as they are without one."""
    return tuple(sorted(found, key=lambda each: bool(winner) and each.name not in winner))


def marked_name(name: str, winner: Mapping[str, Value]) -> str:
    """Returns a parameter's name, with a star where the winner does not have it."""
    return name if not winner or name in winner else f"{name}*"


def _importance(name: str, measured: list[Trial]) -> Importance:
    groups: defaultdict[Value, list[float]] = defaultdict(list)
    for trial in measured:
        if name in trial.config and trial.median_s:
            groups[trial.config[name]].append(log(trial.median_s))
    best = min(min(group) for group in groups.values())
    effects = [
        ValueEffect(
            value=value,
            n_trials=len(group),
            best_s=exp(min(group)),
            mean_s=exp(fmean(group)),
            loss=exp(min(group) - best) - 1,
        )
        for value, group in groups.items()
    ]
    ordered = tuple(sorted(effects, key=lambda effect: effect.loss))
    n_trials = sum(map(len, groups.values()))
    return Importance(name, epsilon_squared(list(groups.values())), n_trials, ordered)


def epsilon_squared(groups: list[list[float]]) -> float | None:
    """Returns the share of variance between groups, corrected for their number (0 to 1; None if undefined)."""
    n, k = sum(map(len, groups)), len(groups)
    if k < 2 or n <= k:
        return None
    mean = fmean(x for group in groups for x in group)
    total = sum(_squares(group, mean) for group in groups)
    if total == 0:
        return None
    within = sum(_squares(group, fmean(group)) for group in groups)
    return max(0.0, 1 - (within / (n - k)) / (total / (n - 1)))


def _squares(group: list[float], mean: float) -> float:
    return sum((x - mean) ** 2 for x in group)
