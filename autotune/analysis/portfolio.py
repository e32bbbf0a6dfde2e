"""Portfolios: a few configurations that serve many problems, with the least worst-case regret for each size.

The regret of a configuration at a problem is its median divided by the best recorded median, minus 1, both from the
same sweep's search. A configuration that failed there, or was not measured, has infinite regret, since it may not work.
A portfolio serves each problem with its member of least regret.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.config import Config
from ..records.record import SweepRecord
from .subset import Subset, best_subsets

N_FOLDS = 10  # folds of the cross-validation; up to LEAVE_ONE_OUT problems each form a fold of their own
LEAVE_ONE_OUT = 20


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
    exact: bool  # True: no other choice of k is better; False: local search found it
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
    subsets = best_subsets(table.regret, k_max)
    left_out = _left_out(table.regret, k_max) if cross_validate and n_problems > 1 else None
    return [
        _portfolio(table, subset, None if left_out is None else Regret.of(left_out[i]))
        for i, subset in enumerate(subsets)
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


def _portfolio(table: RegretTable, subset: Subset, left_out: Regret | None) -> Portfolio:
    members = subset.members
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
        exact=subset.exact,
        n_untried=int((~table.tried[:, members].all(axis=1)).sum()),
    )


def _left_out(regret: npt.NDArray[np.float64], k_max: int) -> npt.NDArray[np.float64]:
    """Returns the regret of each problem under portfolios chosen without its fold, float64 [k_max, n_problems]."""
    n_problems = len(regret)
    n_folds = n_problems if n_problems <= LEAVE_ONE_OUT else N_FOLDS
    fold = np.arange(n_problems) % n_folds
    regrets = np.empty((k_max, n_problems))
    for left_out in (fold == i for i in range(n_folds)):
        for i, subset in enumerate(best_subsets(regret[~left_out], k_max, effort=1 / n_folds)):
            regrets[i:, left_out] = regret[left_out][:, subset.members].min(axis=1)  # larger ones repeat the last
    return regrets
