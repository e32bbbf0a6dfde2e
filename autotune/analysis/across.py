"""Computes how much each parameter matters over many sweeps of a kernel, and which of its values win."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ..core.config import Value, merged_order
from ..records.record import SweepRecord
from .importance import ValueEffect, importances

MOST_VALUES = 5  # values of winners in a table cell; the others are only counted
WINNING = "values of the winners, and how many sweeps each won"
COLUMNS = ("sweeps", "fixed to", "costs", "at worst", WINNING)  # names of the columns in `cells`


@dataclass(frozen=True)
class FixedValue:
    """The loss from fixing a parameter to one value: the best time with it divided by the best time, minus 1."""

    value: Value
    n_sweeps: int  # sweeps that measured the value
    median_loss: float
    worst_loss: float


@dataclass(frozen=True)
class ParameterAcross:
    """The statistics of a parameter over the sweeps in which it varies."""

    name: str
    n_sweeps: int
    shares: tuple[float, ...]  # share of the variance of log(median) in each sweep, if it can be estimated; ascending
    winners: tuple[tuple[Value, int], ...]  # values of winners and how often each won, the most frequent first
    fixed: FixedValue | None  # the value with the least median loss, among values that half of the sweeps measured

    @property
    def share(self) -> float | None:
        """Returns the median share."""
        return median(self.shares) if self.shares else None

    @property
    def share_text(self) -> str:
        """Returns the median share as text."""
        return "-" if self.share is None else f"{100 * self.share:.0f} %"

    def cells(self) -> tuple[object, ...]:
        """Returns the cells of a table's row, in the order of COLUMNS."""
        shown = [f"{value} ({n})" for value, n in self.winners[:MOST_VALUES]]
        more = [f"{len(self.winners) - MOST_VALUES} more"] if len(self.winners) > MOST_VALUES else []
        fixed: tuple[str, ...] = ("-", "-", "-")
        if self.fixed is not None:
            losses = (f"{100 * loss:.1f} %" for loss in (self.fixed.median_loss, self.fixed.worst_loss))
            fixed = (f"{self.fixed.value} ({self.fixed.n_sweeps})", *losses)
        return self.n_sweeps, *fixed, ", ".join([*shown, *more]) or "-"

    def as_json(self) -> dict[str, object]:
        return {
            "parameter": self.name,
            "n_sweeps": self.n_sweeps,
            "share": self.share,
            "shares": list(self.shares),
            "winners": [{"value": value, "n": n} for value, n in self.winners],
            "fixed": None if self.fixed is None else vars(self.fixed),
        }


def parameters_across(sweeps: Sequence[SweepRecord]) -> list[ParameterAcross]:
    """Returns the statistics of all parameters in sweeps of one kernel, the largest median share first."""
    effects: defaultdict[str, list[Sequence[ValueEffect]]] = defaultdict(list)
    shares: defaultdict[str, list[float]] = defaultdict(list)
    winners: defaultdict[str, Counter[Value]] = defaultdict(Counter)
    for sweep in sweeps:
        for name, value in (sweep.winner.config if sweep.winner else {}).items():
            winners[name][value] += 1
        for each in importances(sweep.trials):
            if len(each.values) > 1:
                effects[each.name].append(each.values)
                shares[each.name] += [] if each.share is None else [each.share]
    in_order = merged_order(trial.config for sweep in sweeps for trial in sweep.trials)
    parameters = [
        ParameterAcross(
            name=name,
            n_sweeps=len(effects[name]),
            shares=tuple(sorted(shares[name])),
            winners=tuple(winners[name].most_common()),
            fixed=_fixed(effects[name]),
        )
        for name in in_order
        if name in effects
    ]
    return sorted(parameters, key=lambda each: -1.0 if each.share is None else each.share, reverse=True)


def _fixed(by_sweep: Sequence[Sequence[ValueEffect]]) -> FixedValue | None:
    losses: defaultdict[Value, list[float]] = defaultdict(list)
    for effects in by_sweep:
        for effect in effects:
            losses[effect.value].append(effect.loss)
    values = [
        FixedValue(value, len(each), median(each), max(each))
        for value, each in losses.items()
        if 2 * len(each) >= len(by_sweep)
    ]
    return min(values, key=lambda each: (each.median_loss, each.worst_loss), default=None)
