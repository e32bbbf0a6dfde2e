"""Measures how far repeated measurements differ on a device, and whether two sets of records agree within that.

Each config of a final round was measured twice in its sweep: once in the search, once at its end, seconds or minutes
later, among others. The ratios of the two medians are what repeating a measurement does on that device.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from ..core.units import percent
from ..records.outcome import Relation
from ..records.record import SweepRecord


@dataclass(frozen=True)
class DeviceNoise:
    """The noise of one device. ``typical`` is the median of |ratio - 1|, ``p95`` its 95 % quantile."""

    device: str
    n: int  # pairs of measurements
    typical: float
    p95: float

    def __str__(self) -> str:
        shares = f"{100 * self.typical:.2f} % (median), {100 * self.p95:.2f} % (95 % of them)"
        return f"two measurements of a config on {self.device} differ by {shares}, from {self.n} pairs"


def noise(sweeps: Iterable[SweepRecord]) -> dict[str, DeviceNoise]:
    """Returns the noise of every device that has at least two pairs, by the device's name."""
    differences: dict[str, list[float]] = {}
    for sweep in sweeps:
        found = {t.config: t.median_s for t in sweep.trials if t.median_s} if sweep.finalists else {}
        for finalist in sweep.finalists:
            if first := found.get(finalist.config):
                differences.setdefault(sweep.device.name, []).append(abs(finalist.median_s / first - 1))
    return {
        device: DeviceNoise(device, len(values), median(values), quantiles(values, n=20, method="inclusive")[-1])
        for device, values in differences.items()
        if len(values) > 1
    }


@dataclass(frozen=True)
class Pair:
    """One problem in two sets of records: the winners' medians, in seconds."""

    title: str
    before_s: float
    after_s: float
    same_config: bool
    exchanged: tuple[float, ...]  # each side's loss with the other's winner, where that was measured
    allowed: float  # the relative change that repeating a measurement explains

    @property
    def change(self) -> float:
        return self.after_s / self.before_s - 1

    @property
    def relation(self) -> Relation:
        """Tells how ``after`` compares with ``before``: same, faster or slower."""
        if abs(self.change) <= self.allowed:
            return Relation.SAME
        return Relation.SLOWER if self.change > 0 else Relation.FASTER


@dataclass(frozen=True)
class Comparison:
    """Two sets of records side by side: the problems that both hold, and the noise of their devices."""

    pairs: tuple[Pair, ...]
    noise: tuple[DeviceNoise, ...]

    @property
    def beyond(self) -> list[Pair]:
        """Returns the problems that changed by more than the noise, those that changed most first."""
        return sorted((p for p in self.pairs if p.relation != Relation.SAME), key=lambda p: -abs(p.change))

    def told_problems(self) -> str:
        """Returns how many problems both hold, and how many of them changed."""
        n = Counter(p.relation for p in self.pairs)
        n_config = sum(p.same_config for p in self.pairs)
        by_chance = round(0.05 * sum(p.allowed > 0 for p in self.pairs))  # equal ones are within the noise in 95 %
        return (
            f"{len(self.pairs)} in both: {n[Relation.SAME]} same, {n[Relation.FASTER]} faster, "
            f"{n[Relation.SLOWER]} slower; {n_config} with the same winner"
        ) + (f"; {by_chance} expected to differ by chance" if by_chance else "")

    def told_change(self) -> str:
        """Returns the range of the changes."""
        changes = [p.change for p in self.pairs]
        return f"{percent(median(changes))} (median), {percent(min(changes))} to {percent(max(changes))}"

    def told_exchanged(self) -> str:
        """Returns how the winners of one side did on the other; "" where none was timed there."""
        losses = [(loss, p.allowed) for p in self.pairs for loss in p.exchanged]
        if not losses:
            return ""
        n_within = sum(loss <= allowed for loss, allowed in losses)
        return (
            f"winners of one side timed on the other: {n_within} of {len(losses)} "
            f"are slower by no more than the noise; worst {percent(max(loss for loss, _ in losses))}"
        )


def compared(before: Sequence[SweepRecord], after: Sequence[SweepRecord]) -> Comparison:
    """Returns what differs; what a pair allows is its device's 95 % noise, from both sets."""
    return Comparison(tuple(pairs(before, after)), tuple(noise([*before, *after]).values()))


def matched(before: Sequence[SweepRecord], after: Sequence[SweepRecord]) -> list[tuple[SweepRecord, SweepRecord]]:
    """Returns the sweeps of one kernel, problem and device in both sets, those with a winner on both sides."""
    others = {sweep.title: sweep for sweep in after}
    both = [(sweep, others[sweep.title]) for sweep in before if sweep.title in others]
    return [(sweep, other) for sweep, other in both if sweep.winner and other.winner]


def pairs(before: Sequence[SweepRecord], after: Sequence[SweepRecord]) -> list[Pair]:
    """Returns the problems that both hold, of the same kernel and device.

    What each allows is its device's 95 % noise.
    """
    known = noise([*before, *after])
    found = []
    for sweep, other in matched(before, after):
        assert sweep.winner and other.winner
        same = sweep.winner.config == other.winner.config
        allowed = known[sweep.device.name].p95 if sweep.device.name in known else 0.0
        losses = (_loss(sweep, other), _loss(other, sweep))
        exchanged = tuple(loss for loss in losses if loss is not None)
        medians = sweep.winner.median_s, other.winner.median_s
        found.append(Pair(sweep.title, *medians, same, exchanged, allowed))
    return found


def _loss(sweep: SweepRecord, other: SweepRecord) -> float | None:
    """Returns what ``sweep``'s problem loses with ``other``'s winner, by the medians of ``sweep``'s search."""
    found = {t.config: t.median_s for t in sweep.trials if t.median_s}
    winner = other.winner.config if other.winner else None
    return found[winner] / min(found.values()) - 1 if winner in found else None
