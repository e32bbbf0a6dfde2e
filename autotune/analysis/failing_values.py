"""Finds values of parameters that make configs fail: single values, or pairs, with which every config failed.

It also counts the failed configs for each value.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ..core.config import Value
from ..core.errors import Status
from ..records.trial import Trial

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
    tried, failed = _groups(trials), _groups(trial for trial in trials if trial.status == status)
    rules = [rule for rule, numbers in failed.items() if len(numbers) == len(tried[rule])]
    left = {trial.number for trial in trials if trial.status == status}
    if not left or len(left) == len(trials):
        return []  # no trial or every trial has this status, so no value explains it
    failing: list[FailingValues] = []
    while len(failing) < MOST_RULES and rules:
        best = max(rules, key=lambda rule: (len(failed[rule] & left), -len(rule)))
        if len(failed[best] & left) < LEAST_TRIALS:
            break
        failing.append(FailingValues(best, len(failed[best])))
        left -= failed[best]
    return failing


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


def _groups(trials: Iterable[Trial]) -> dict[tuple[ParameterValue, ...], set[int]]:
    """Returns the numbers of the trials with each value, and with each pair of values."""
    groups: dict[tuple[ParameterValue, ...], set[int]] = {}
    for trial in trials:
        for rule in _rules(list(trial.config.items())):
            groups.setdefault(rule, set()).add(trial.number)
    return groups


def _rules(pairs: Sequence[ParameterValue]) -> Iterator[tuple[ParameterValue, ...]]:
    yield from ((pair,) for pair in pairs)
    yield from combinations(pairs, 2)
