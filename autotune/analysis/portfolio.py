"""Portfolios: a few configurations that serve many problems, with the least worst-case regret for each size.

The regret of a configuration at a problem is its median divided by the best recorded median, minus 1, both from the
same sweep's search. A configuration that failed there, or was not measured, has infinite regret, since it may not work.
A portfolio serves each problem with its member of least regret. Greedy choices find its members, and exchanges of one
of them improve it, also from random starts. (Worst-case regret: Savage, The theory of statistical decision, 1951.)
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.config import Config
from ..records.record import SweepRecord

N_FOLDS = 10  # folds of the cross-validation; up to LEAVE_ONE_OUT problems each form a fold of their own
LEAVE_ONE_OUT = 20
N_STARTS = 10  # all but the first replace two members at random
Members = tuple[int, ...]


@dataclass(frozen=True)
class RegretTable:
    """The measurements of one kernel on one device.

    ``regret`` is float64 [n_problems, n_configs]; ``tried`` is bool of the same shape: whether a config was measured,
    or failed, at a problem.
    """

    kernel: str
    device: str
    problems: tuple[str, ...]
    configs: tuple[Config, ...]
    regret: npt.NDArray[np.float64]
    tried: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Regret:
    """The regret of a portfolio over problems; it is infinite if a problem is not served."""

    worst: float
    mean: float
    median: float
    n_unserved: int

    @staticmethod
    def of(regret: npt.NDArray[np.float64]) -> "Regret":
        """Returns the summary of ``regret``, float64 [n_problems]."""
        values = (float(regret.max()), float(regret.mean()), float(np.median(regret)))
        return Regret(*values, n_unserved=int(np.isinf(regret).sum()))


@dataclass(frozen=True)
class Portfolio:
    """The best known set of configurations of its size."""

    configs: tuple[Config, ...]  # ordered by the number of problems served, largest first
    total: Regret
    left_out: Regret | None  # cross-validated regret; None with a single problem
    chosen: tuple[int | None, ...]  # index in ``configs`` of each problem's config; None: not served
    regret: tuple[float, ...]  # regret of each problem
    n_untried: int  # problems at which some member was never tried, and might be better than the others


def tables(sweeps: Iterable[SweepRecord]) -> list[RegretTable]:
    """Returns one table for each (kernel, device), ordered by name."""
    groups: defaultdict[tuple[str, str], list[SweepRecord]] = defaultdict(list)
    for sweep in sweeps:
        if sweep.median_s:
            groups[sweep.kernel, sweep.device.name].append(sweep)
    return [_table(*about, group) for about, group in sorted(groups.items())]


def portfolios(table: RegretTable, k_max: int, *, cross_validate: bool = True) -> list[Portfolio]:
    """Returns the best portfolio of 1, 2, ... ``k_max`` configurations, by worst regret, then by mean regret.

    The list ends early when another configuration would gain nothing. As long as some problems are not served, their
    number is compared first. The result is deterministic. In the cross-validation, each problem is served by the best
    config of a portfolio that was chosen without the problem's fold.
    """
    n_problems = len(table.problems)
    subsets = list(best_subsets(table.regret, k_max))
    left_out = _left_out(table.regret, k_max) if cross_validate and n_problems > 1 else None
    return [
        _portfolio(table, members, None if left_out is None else Regret.of(left_out[i]))
        for i, members in enumerate(subsets)
    ]


def _table(kernel: str, device: str, sweeps: Sequence[SweepRecord]) -> RegretTable:
    columns = sorted({config for sweep in sweeps for config in sweep.median_s}, key=str)
    tried = np.array([[config in of_sweep for config in columns] for of_sweep in map(_configs_of, sweeps)], bool)
    place = {config: i for i, config in enumerate(columns)}
    regret = np.full((len(sweeps), len(columns)), np.inf)
    for row, sweep in zip(regret, sweeps, strict=True):
        row[[place[config] for config in sweep.median_s]] = list(sweep.median_s.values())
        row /= row.min()
    return RegretTable(
        kernel, device, tuple(sweep.about.problem_name for sweep in sweeps), tuple(columns), regret - 1, tried
    )


def _configs_of(sweep: SweepRecord) -> set[Config]:
    return {trial.config for trial in sweep.trials}


def _portfolio(table: RegretTable, members: Members, left_out: Regret | None) -> Portfolio:
    choice = np.argmin(table.regret[:, members], axis=1)
    regret = np.min(table.regret[:, members], axis=1)
    served = np.isfinite(regret)
    counts = np.bincount(choice[served], minlength=len(members))
    order = np.argsort(-counts, kind="stable")
    rank = np.argsort(order)
    return Portfolio(
        configs=tuple(table.configs[members[i]] for i in order),
        total=Regret.of(regret),
        left_out=left_out,
        chosen=tuple(int(rank[i]) if known else None for i, known in zip(choice, served, strict=True)),
        regret=tuple(map(float, regret)),
        n_untried=int((~table.tried[:, members].all(axis=1)).sum()),
    )


def _left_out(regret: npt.NDArray[np.float64], k_max: int) -> npt.NDArray[np.float64]:
    """Returns the regret of each problem under portfolios chosen without its fold, float64 [k_max, n_problems]."""
    n_problems = len(regret)
    n_folds = n_problems if n_problems <= LEAVE_ONE_OUT else N_FOLDS
    fold = np.arange(n_problems) % n_folds
    regrets = np.empty((k_max, n_problems))
    for left_out in (fold == i for i in range(n_folds)):
        for i, members in enumerate(best_subsets(regret[~left_out], k_max, n_starts=1)):
            regrets[i:, left_out] = regret[left_out][:, members].min(axis=1)  # larger ones repeat the last
    return regrets


# ---------------------------------------------------------------------- members
def best_subsets(table: npt.NDArray[np.float64], k_max: int, n_starts: int = N_STARTS) -> Iterator[Members]:
    """Yields good subsets of 1, 2, ... ``k_max`` columns, as long as another column gains anything.

    ``table``: float64 [n_rows, n_columns], not negative, infinite where a column does not serve a row. The value of a
    subset in a row is its least value there. Subsets are compared by their number of infinite rows, then by the worst
    finite row, then by the mean of the finite rows.
    """
    columns = np.unique(table, axis=1, return_index=True)[1]
    columns.sort()
    rows = np.ascontiguousarray(table[:, columns].T)  # the first one stands for columns that are equal
    members, rng = list[int](), np.random.default_rng(0)
    while len(members) < k_max:
        best, score = _best(np.minimum(rows, rows[members].min(axis=0, initial=np.inf)))
        if members and score >= _score(rows, members):
            return
        members = _exchanged(rows, [*members, best])
        for _ in range(n_starts - 1 if 1 < len(members) < len(rows) else 0):
            kept = rng.permutation(members)[2:].tolist()
            other = _exchanged(rows, [*kept, *rng.choice(len(rows), 2, replace=False).tolist()])
            members = min(members, other, key=lambda one: _score(rows, one))
        yield tuple(sorted(int(columns[i]) for i in members))


def _score(rows: npt.NDArray[np.float64], members: list[int]) -> tuple[int, float, float]:
    return _best(rows[members].min(axis=0)[None])[1]


def _exchanged(rows: npt.NDArray[np.float64], members: list[int]) -> list[int]:
    """Returns ``members`` after exchanges of one of them, as long as they help."""
    score, place = _score(rows, members), 0
    while place < len(members):
        others = members[:place] + members[place + 1 :]
        best, better = _best(np.minimum(rows, rows[others].min(axis=0, initial=np.inf)))
        members, score, place = ([*others, best], better, 0) if better < score else (members, score, place + 1)
    return members


def _best(candidates: npt.NDArray[np.float64]) -> tuple[int, tuple[int, float, float]]:
    """Returns the best of ``candidates`` [n_candidates, n_rows], and (infinite rows, worst finite row, finite mean)."""
    finite = np.isfinite(candidates)
    values = np.where(finite, candidates, 0.0)
    n_infinite, worst, mean = (~finite).sum(axis=1), values.max(axis=1), values.mean(axis=1)
    best = int(np.lexsort((mean, worst, n_infinite))[0])
    return best, (int(n_infinite[best]), float(worst[best]), float(mean[best]))
