"""Computes which parameters interact: the variance that a pair explains beyond the sum of both parameters.

It is the second-order effect of functional ANOVA, estimated from the measured trials like the main effects in
``importance``. A constant for each pair of values explains a share of the variance of log(median); the best sum of one
constant for each value of each parameter explains less. Both shares are corrected for their number of constants, like
epsilon squared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ..core.config import Value
from ..records.trial import Trial
from .coded import coded


@dataclass(frozen=True)
class Interaction:
    """A pair of parameters. ``share``: of the variance of log(median) among the configs with both."""

    names: tuple[str, str]
    share: float
    n_trials: int
    best_s: Mapping[tuple[Value, Value], float]  # measured pair of values -> least median


def interactions(trials: Iterable[Trial], n: int) -> tuple[Interaction, ...]:
    """Returns the ``n`` pairs of parameters that explain the most beyond the sum of both, the largest share first.

    Pairs that explain nothing beyond the sum, and pairs with too few trials for an estimate, are left out.
    """
    measured = [trial for trial in trials if trial.median_s]
    log_s = np.log([trial.median_s or 1.0 for trial in measured])
    columns = {name: each.codes for name, each in coded(measured).items()}
    shares = {
        (a, b): share
        for a, b in combinations(columns, 2)
        if (share := _share(log_s, columns[a], columns[b])) is not None and share > 0
    }
    strongest = sorted(shares, key=lambda pair: -shares[pair])[:n]
    return tuple(_interaction(pair, shares[pair], measured) for pair in strongest)


def _interaction(names: tuple[str, str], share: float, measured: list[Trial]) -> Interaction:
    a, b = names
    best_s: dict[tuple[Value, Value], float] = {}
    having = [trial for trial in measured if a in trial.config and b in trial.config]
    for trial in having:
        pair, median_s = (trial.config[a], trial.config[b]), trial.median_s or 0.0
        best_s[pair] = min(median_s, best_s.get(pair, median_s))
    return Interaction(names, share, len(having), best_s)


def _share(log_s: npt.NDArray[np.float64], a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float | None:
    """Returns the share that pairs of values explain minus the share of the sum; None with too few trials."""
    both = (a >= 0) & (b >= 0)
    if not both.any():
        return None
    (_, a), (_, b) = (np.unique(codes[both], return_inverse=True) for codes in (a, b))
    y = log_s[both] - log_s[both].mean()
    total, n = float(y @ y), len(y)
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1)
    sums = np.zeros_like(counts)
    np.add.at(sums, (a, b), y)
    n_pairs = int((counts > 0).sum())
    # The normal equations of the sum, with an unknown for each value of both parameters. Their solution is unique up to
    # a constant, unless some values of both parameters only occur together.
    gram = np.block([[np.diag(counts.sum(axis=1)), counts], [counts.T, np.diag(counts.sum(axis=0))]])
    right = np.concatenate([sums.sum(axis=1), sums.sum(axis=0)])
    rank = int(np.linalg.matrix_rank(gram, hermitian=True))
    if total <= 0 or n <= n_pairs or n_pairs <= rank:
        return None
    by_sum = total - float(right @ np.linalg.pinv(gram, hermitian=True) @ right)
    by_pair = total - float((sums[counts > 0] ** 2 / counts[counts > 0]).sum())
    return (by_sum / (n - rank) - by_pair / (n - n_pairs)) / (total / (n - 1))
