"""Portfolios: a few configurations that serve many problems, with the least worst-case regret for each size.

The regret of a configuration at a problem is its median divided by the best recorded median, minus 1, both from the
same sweep's search. A configuration that failed there, or was not measured, has infinite regret, since it may not work.
A portfolio serves each problem with its member of least regret. Greedy choices find its members, and exchanges of one
of them improve it, also from random starts. (Worst-case regret: Savage, The theory of statistical decision, 1951.)
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from ..core.config import Config
from ..records.record import SweepRecord

N_FOLDS = 20  # folds of the cross-validation; up to so many problems each form a fold of their own
N_RANDOM = 9  # further starts for each size, with two members at random
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RegretTable:
    """The sweeps of one kernel on one device, with the regret of each config, float64 [n_sweeps, n_configs]."""

    sweeps: tuple[SweepRecord, ...]
    configs: tuple[Config, ...]
    regret: Floats


@dataclass(frozen=True)
class Portfolio:
    """The best known set of configurations of its size. A regret is infinite where no member serves the problem."""

    configs: tuple[Config, ...]  # ordered by the number of problems served, largest first
    chosen: tuple[int | None, ...]  # index in ``configs`` of each problem's config; None: not served
    regret: Floats  # [n_problems]
    n_untried: int  # problems at which some member was never tried, and might be better than the others


def tables(sweeps: Iterable[SweepRecord]) -> list[RegretTable]:
    """Returns one table for each (kernel, device), ordered by name."""
    groups = defaultdict[tuple[str, str], list[SweepRecord]](list)
    for sweep in sweeps:
        if sweep.median_s:
            groups[sweep.kernel, sweep.device.name].append(sweep)
    found = []
    for _, group in sorted(groups.items()):
        configs = tuple(sorted({config for sweep in group for config in sweep.median_s}, key=str))
        median_s = np.array([[sweep.median_s.get(config, inf) for config in configs] for sweep in group])
        found.append(RegretTable(tuple(group), configs, median_s / median_s.min(axis=1, keepdims=True) - 1))
    return found


def portfolios(table: RegretTable, k_max: int) -> list[Portfolio]:
    """Returns the best portfolio of 1, 2, ... ``k_max`` configurations, by worst regret, then by mean regret.

    The list ends early when another configuration would gain nothing. As long as some problems are not served, their
    number is compared first. The result is deterministic.
    """
    found = []
    for members in best_subsets(table.regret, k_max):
        regret, best = table.regret[:, members].min(axis=1), table.regret[:, members].argmin(axis=1)
        n_served = np.bincount(best[regret < inf], minlength=len(members))
        order = np.argsort(-n_served, kind="stable").tolist()
        configs = tuple(table.configs[members[i]] for i in order)
        chosen = tuple(order.index(i) if each < inf else None for i, each in zip(best, regret, strict=True))
        n_untried = sum(not {trial.config for trial in sweep.trials}.issuperset(configs) for sweep in table.sweeps)
        found.append(Portfolio(configs, chosen, regret, n_untried))
    return found


def held_out_regret(regret: Floats, k_max: int) -> Floats:
    """Returns the regret of each problem under portfolios chosen without its fold, float64 [k_max, n_problems].

    ``regret``: that of a RegretTable. A result is infinite where no member serves the problem, or it is the only one.
    """
    n_problems = len(regret)
    held_out, fold = np.full((k_max, n_problems), inf), np.arange(n_problems) % N_FOLDS
    for out in (fold == number for number in range(min(n_problems, N_FOLDS)) if n_problems > 1):
        for i, members in enumerate(best_subsets(regret[~out], k_max, n_random=0)):
            held_out[i:, out] = regret[out][:, members].min(axis=1)  # larger ones repeat the last
    return held_out


def best_subsets(table: Floats, k_max: int, n_random: int = N_RANDOM) -> Iterator[tuple[int, ...]]:
    """Yields good subsets of 1, 2, ... ``k_max`` columns, as long as another column gains anything.

    ``table``: float64 [n_rows, n_columns], not negative, infinite where a column does not serve a row. The value of a
    subset in a row is its least value there. Subsets are compared by their number of infinite rows, then by the worst
    finite row, then by the mean of the finite rows. ``n_random``: further starts, each with two random columns.
    """
    rng, score, members = np.random.default_rng(0), (inf, inf, inf), list[int]()
    for _ in range(k_max):
        starts = [[0, *members]]  # the first one is exchanged first, so any will do
        for _ in range(n_random if members else 0):
            starts.append([*rng.permutation(members)[1:], *rng.integers(table.shape[1], size=2)])
        best = min(_exchanged(table, start) for start in starts)
        if best[0] >= score:
            return
        score, members = best
        yield tuple(sorted(int(member) for member in members))


def _exchanged(table: Floats, members: list[int]) -> tuple[tuple[float, float, float], list[int]]:
    """Returns members, the first one always exchanged, then one after the other as long as an exchange of one helps."""
    score, n_kept = (inf, inf, inf), 0
    while n_kept < len(members):
        first, *others = members
        better, exchanged = _with_best(table, others)
        score, members, n_kept = (better, exchanged, 0) if better < score else (score, [*others, first], n_kept + 1)
    return score, members


def _with_best(table: Floats, members: list[int]) -> tuple[tuple[float, float, float], list[int]]:
    """Returns ``members`` and the column that helps them most."""
    values = np.minimum(table, table[:, members].min(axis=1, initial=inf, keepdims=True))
    is_served = np.isfinite(values)
    values[~is_served] = 0.0
    n_unserved, worst, mean = (~is_served).sum(axis=0), values.max(axis=0), values.mean(axis=0)
    best = int(np.lexsort((mean, worst, n_unserved))[0])
    return (int(n_unserved[best]), float(worst[best]), float(mean[best])), [*members, best]
