"""Chooses the k columns of a table with the least worst row minimum.

Greedy choices, and covers of all rows below a threshold, are starting points; exchanges of one column improve them; if
there are few subsets, branch and bound finds the best. (Worst-case regret: Savage, "The theory of statistical
decision", JASA 46, 1951. Bisecting a threshold: Hochbaum and Shmoys, "A unified approach to approximation algorithms
for bottleneck problems", J. ACM 33, 1986.)
"""

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Score = tuple[int, float, float]  # (infinite rows, worst finite row, sum of the finite rows); smaller is better
Members = tuple[int, ...]
EXACT_WORK = 200_000_000  # values that branch and bound may read without pruning: about half a second
EXACT_NODES = 30_000  # subsets that branch and bound may extend
N_SHAKES = 20  # random restarts for a subset that is not proven optimal
N_BISECTIONS = 12  # bisection steps for the threshold of a cover
N_SAMPLED = 64  # rows that distinguish most columns


@dataclass(frozen=True)
class Subset:
    """A set of at most k columns of a table. ``exact``: no other k columns are better."""

    members: Members
    exact: bool


def best_subsets(table: Values, k_max: int, effort: float = 1.0) -> list[Subset]:
    """Returns the best subsets of 1, 2, ... ``k_max`` columns, as long as another column gains anything.

    ``table``: float64 [n_rows, n_columns], not negative, infinite where a column does not serve a row. The value of a
    subset in a row is its least value there. Subsets are compared by their number of infinite rows, then by the worst
    finite row, then by the mean of the finite rows. ``effort`` scales the limits of branch and bound and the number of
    restarts. The result is deterministic.
    """
    columns = np.ascontiguousarray(table.T)
    kept = _undominated(columns)
    columns = columns[kept]
    n_columns, n_rows = columns.shape
    subsets: list[Subset] = []
    best: Members = ()
    for k in range(1, k_max + 1):
        starts = {_greedy(columns, k, best), _greedy(columns, k, ()), _covering(columns, k, best)}
        tried = [_exchanged(columns, k, start) for start in sorted(starts)]
        best = min(tried, key=lambda members: _score(columns, members))
        if len(best) < k:
            break
        n_nodes, n_subsets = comb(n_columns, min(k - 1, n_columns)), comb(n_columns, min(k, n_columns))
        exact = k >= n_columns or (n_nodes <= effort * EXACT_NODES and n_subsets * n_rows <= effort * EXACT_WORK)
        best = _Proof(columns, k, best).best if exact else _shaken(columns, k, best, round(effort * N_SHAKES))
        subsets.append(Subset(tuple(sorted(int(kept[i]) for i in best)), exact))
    return subsets


# ---------------------------------------------------------------------- scores
def _score(columns: Values, members: Members) -> Score:
    return _least(columns[list(members)].min(axis=0)[np.newaxis])[1]


def _least(rows: Values) -> tuple[int, Score]:
    """Returns (index, score) of the best candidate, float64 [n_candidates, n_rows]; ties go to the first."""
    worst = rows.max(axis=1)
    among, n_infinite = np.arange(len(rows)), 0
    if np.isinf(worst.min()):
        infinite = np.isinf(rows)
        counts = infinite.sum(axis=1)
        n_infinite = int(counts.min())
        among = np.flatnonzero(counts == n_infinite)
        rows = np.where(infinite[among], 0.0, rows[among])
        worst = rows.max(axis=1)
    least = worst.min()
    equal = np.flatnonzero(worst == least)
    means = rows[equal].mean(axis=1)
    first = int(means.argmin())
    return int(among[equal[first]]), (n_infinite, float(least), float(means[first]))


def _undominated(columns: Values) -> npt.NDArray[np.intp]:
    """Returns the indices of the columns that no other column dominates in every row; of equal columns the first."""
    sampled = columns[:, :: max(1, columns.shape[1] // N_SAMPLED)]
    kept = []
    for i, column in enumerate(columns):
        rivals = np.flatnonzero((sampled <= sampled[i]).all(axis=1))
        rivals = rivals[rivals != i]
        rivals = rivals[(columns[rivals] <= column).all(axis=1)]
        equal = (columns[rivals] == column).all(axis=1)
        if not np.any(~equal | (rivals < i)):
            kept.append(i)
    return np.array(kept, dtype=np.intp)


# ---------------------------------------------------------------------- starting points and improvements
def _greedy(columns: Values, k: int, members: Members) -> Members:
    """Returns ``members`` extended, one at a time, by the best column, until no column gains anything."""
    left = columns[list(members)].min(axis=0, initial=np.inf)
    score = _least(left[np.newaxis])[1]
    while len(members) < k:
        best, better = _least(np.minimum(columns, left))
        if better >= score:
            break
        members, score, left = (*members, best), better, np.minimum(left, columns[best])
    return members


def _covering(columns: Values, k: int, members: Members) -> Members:
    """Returns columns that keep all rows below the lowest threshold at which greedy set cover needs at most k."""
    best = _greedy(columns, k, members)
    n_infinite, high, _ = _score(columns, best)
    if n_infinite:
        return best
    low = 0.0
    for _ in range(N_BISECTIONS):
        threshold = (low + high) / 2
        cover = _cover(columns <= threshold, k)
        if cover is None:
            low = threshold
        else:
            best, high = cover, threshold
    return best


def _cover(covers: npt.NDArray[np.bool_], k: int) -> Members | None:
    """Returns at most k columns of bool [n_columns, n_rows] that cover every row; None if the greedy choice fails."""
    weights = covers.astype(np.float32)
    open_rows = np.ones(covers.shape[1], dtype=np.float32)
    members: Members = ()
    while open_rows.any():
        if len(members) == k:
            return None
        best = int((weights @ open_rows).argmax())
        members = (*members, best)
        open_rows[covers[best]] = 0.0
    return members


def _exchanged(columns: Values, k: int, members: Members) -> Members:
    """Returns ``members`` filled up to k, and improved by exchanges of one column as long as they help."""
    members = _greedy(columns, k, members)
    score = _score(columns, members)
    improved = True
    while improved:
        improved = False
        for place in range(len(members)):
            others = members[:place] + members[place + 1 :]
            left = columns[list(others)].min(axis=0, initial=np.inf)
            best, better = _least(np.minimum(columns, left))
            if better < score:
                members, score, improved = (*others, best), better, True
    return members


def _shaken(columns: Values, k: int, members: Members, n_times: int) -> Members:
    """Returns the best of ``members`` and of restarts, which replace two of more than two members at random."""
    rng, score = np.random.default_rng(0), _score(columns, members)
    for _ in range(n_times if len(members) > 2 else 0):
        kept = rng.permutation(len(members))[2:]
        drawn = rng.choice(len(columns), size=2, replace=False)
        start = tuple(dict.fromkeys([*(members[i] for i in kept), *map(int, drawn)]))
        exchanged = _exchanged(columns, k, start)
        if (better := _score(columns, exchanged)) < score:
            members, score = exchanged, better
    return members


class _Proof:
    """A branch-and-bound search over all subsets of k columns; ``best`` is never worse than ``known``."""

    def __init__(self, columns: Values, k: int, members: Members) -> None:
        self.columns = columns
        self.best, self.score = members, _score(columns, members)
        self.rest = np.minimum.accumulate(columns[::-1])[::-1]  # rest[i]: row minima over all columns from i on
        self._extend((), np.full(columns.shape[1], np.inf), min(k, len(columns)))

    def _extend(self, members: Members, left: Values, n_more: int) -> None:
        start = members[-1] + 1 if members else 0
        if n_more == 1:
            last, score = _least(np.minimum(self.columns[start:], left))
            if score < self.score:
                self.best, self.score = (*members, start + last), score
            return
        for i in range(start, len(self.columns) - n_more + 1):
            if _least(np.minimum(self.rest[i], left)[np.newaxis])[1] >= self.score:
                return  # even all remaining columns together are not better
            self._extend((*members, i), np.minimum(left, self.columns[i]), n_more - 1)
