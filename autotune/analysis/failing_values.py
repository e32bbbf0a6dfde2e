"""Finds values of parameters that make configs fail: single values, or pairs, with which every config failed.

It also counts the failed configs for each value.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from ..core.config import Value
from ..core.errors import Status
from ..records.trial import Trial
from .coded import coded

LEAST_TRIALS = 3  # failures that a rule must explain; fewer may coincide by chance
MOST_RULES = 3

ParameterValue = tuple[str, Value]  # a parameter and one of its values


@dataclass(frozen=True)
class FailingValues:
    """Values with which all ``n`` configs failed with the same status."""

    values: tuple[ParameterValue, ...]
    n: int

    def __str__(self) -> str:
        return " with ".join(f"{name}={value}" for name, value in self.values)


def failing_values(trials: Sequence[Trial], status: Status) -> list[FailingValues]:
    """Returns values with which all trials have this status; those that explain the most failures come first.

    Single values come before pairs. Each one explains at least LEAST_TRIALS failures that earlier ones do not.
    """
    is_failed = np.array([trial.status == status for trial in trials], bool)
    if not is_failed.any() or is_failed.all():
        return []  # no trial or every trial has this status, so no value explains it
    rules = _failing_rules(trials, is_failed)
    left, failing = np.ones(np.count_nonzero(is_failed), bool), list[FailingValues]()
    while len(failing) < MOST_RULES and rules:
        best = max(rules, key=lambda rule: (np.count_nonzero(rules[rule] & left), -len(rule)))
        if np.count_nonzero(rules[best] & left) < LEAST_TRIALS:
            break
        failing.append(FailingValues(best, int(np.count_nonzero(rules[best]))))
        left &= ~rules[best]
    return failing


def _failing_rules(trials: Sequence[Trial], is_failed: np.ndarray) -> dict[tuple[ParameterValue, ...], np.ndarray]:
    """Returns the values, and pairs of values, with which all trials failed: rule -> bool [n_failed], those with it.

    They are in the order of the first trial with each, and of the parameters in it.
    """
    parameters = coded(trials)
    rules: list[tuple[int, tuple[ParameterValue, ...], np.ndarray]] = []
    for names in chain(((name,) for name in parameters), combinations(parameters, 2)):
        codes, has = np.zeros(len(trials), np.int64), np.ones(len(trials), bool)
        for each in map(parameters.__getitem__, names):
            codes, has = codes * len(each.values) + each.codes, has & (each.codes >= 0)
        n = int(np.prod([len(parameters[name].values) for name in names]))
        tried = np.bincount(codes[has], minlength=n)
        failed = np.bincount(codes[has & is_failed], minlength=n)
        for code in np.flatnonzero((failed > 0) & (failed == tried)):
            own = (has & (codes == code))[is_failed]
            places = np.unravel_index(code, [len(parameters[name].values) for name in names])
            values = tuple((name, parameters[name].values[place]) for name, place in zip(names, places, strict=True))
            rules.append((int(own.argmax()), values, own))
    return {values: own for _, values, own in sorted(rules, key=lambda rule: rule[0])}


@dataclass(frozen=True)
class FailureCount:
    """The ``n`` trials with one value of a parameter. ``failed``: number of failed ones, by status."""

    value: Value
    n: int
    failed: Mapping[Status, int]

    @property
    def share(self) -> float:
        """Returns the share of the trials that failed."""
        return sum(self.failed.values()) / self.n


def failure_counts(trials: Sequence[Trial]) -> dict[str, list[FailureCount]]:
    """Returns parameter -> counts for each value, for parameters whose values differ in the share of failed trials.

    The parameter with the largest difference comes first.
    """
    statuses: defaultdict[str, defaultdict[Value, Counter[Status]]] = defaultdict(lambda: defaultdict(Counter))
    for trial in trials:
        for name, value in trial.config.items():
            statuses[name][value][trial.status] += 1
    counts = {
        name: [
            FailureCount(value, own.total(), {s: n for s, n in own.items() if s != Status.MEASURED})
            for value, own in by_value.items()
        ]
        for name, by_value in statuses.items()
    }
    ranges = {name: max(each.share for each in own) - min(each.share for each in own) for name, own in counts.items()}
    return {name: counts[name] for name in sorted(counts, key=lambda name: -ranges[name]) if ranges[name] > 0}
