"""Measures the noise of a device, and whether two sets of records agree within it.

Each config of a final round was measured twice in its sweep: in the search, and among other configs at the end, seconds
or minutes later. The ratios of the two medians are the noise of repeated measurements on that device.
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
        medians = {t.config: t.median_s for t in sweep.trials if t.median_s} if sweep.finalists else {}
        for finalist in sweep.finalists:
            if first := medians.get(finalist.config):
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
    exchanged: tuple[float, ...]  # each side's loss with the other side's winner, if it was measured
    allowed: float  # the relative change that noise explains

    @property
    def change(self) -> float:
        return self.after_s / self.before_s - 1

    @property
    def relation(self) -> Relation:
        """Returns how ``after`` compares with ``before``: same, faster or slower."""
        if abs(self.change) <= self.allowed:
            return Relation.SAME
        return Relation.SLOWER if self.change > 0 else Relation.FASTER


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sets of records: the problems in both, and the noise of their devices."""

    pairs: tuple[Pair, ...]
    noise: tuple[DeviceNoise, ...]

    @property
    def beyond(self) -> list[Pair]:
        """Returns the problems that changed by more than the noise, the largest change first."""
        return sorted((p for p in self.pairs if p.relation != Relation.SAME), key=lambda p: -abs(p.change))

    def told_problems(self) -> str:
        """Returns in words how many problems are in both sets, and how many of them changed."""
        n = Counter(p.relation for p in self.pairs)
        n_config = sum(p.same_config for p in self.pairs)
        by_chance = round(0.05 * sum(p.allowed > 0 for p in self.pairs))  # the noise covers 95 % of equal problems
        return (
            f"{len(self.pairs)} in both: {n[Relation.SAME]} same, {n[Relation.FASTER]} faster, "
            f"{n[Relation.SLOWER]} slower; {n_config} with the same winner"
        ) + (f"; {by_chance} expected to differ by chance" if by_chance else "")

    def told_change(self) -> str:
        """Returns the median and the range of the changes, in words."""
        changes = [p.change for p in self.pairs]
        return f"{percent(median(changes))} (median), {percent(min(changes))} to {percent(max(changes))}"

    def told_exchanged(self) -> str:
        """Returns in words how the winners of one side did on the other; "" if none was timed there."""
        losses = [(loss, p.allowed) for p in self.pairs for loss in p.exchanged]
        if not losses:
            return ""
        n_within = sum(loss <= allowed for loss, allowed in losses)
        return (
            f"winners of one side timed on the other: {n_within} of {len(losses)} "
            f"are slower by no more than the noise; worst {percent(max(loss for loss, _ in losses))}"
        )


def compared(before: Sequence[SweepRecord], after: Sequence[SweepRecord]) -> Comparison:
    """Returns the comparison of two sets; each pair allows the 95 % noise of its device, computed from both sets."""
    return Comparison(tuple(pairs(before, after)), tuple(noise([*before, *after]).values()))


def matched(before: Sequence[SweepRecord], after: Sequence[SweepRecord]) -> list[tuple[SweepRecord, SweepRecord]]:
    """Returns the pairs of sweeps with the same kernel, problem and device, and with a winner on both sides."""
    others = {sweep.title: sweep for sweep in after}
    both = [(sweep, others[sweep.title]) for sweep in before if sweep.title in others]
    return [(sweep, other) for sweep, other in both if sweep.winner and other.winner]


def pairs(before: Sequence[SweepRecord], after: Sequence[SweepRecord]) -> list[Pair]:
    """Returns the problems in both sets, for the same kernel and device.

    Each pair allows the 95 % noise of its device.
    """
    noise_of = noise([*before, *after])
    pairs_of_both = []
    for sweep, other in matched(before, after):
        assert sweep.winner and other.winner
        same = sweep.winner.config == other.winner.config
        allowed = noise_of[sweep.device.name].p95 if sweep.device.name in noise_of else 0.0
        losses = (sweep.loss(other.winner.config), other.loss(sweep.winner.config))
        exchanged = tuple(loss for loss in losses if loss is not None)
        medians = sweep.winner.median_s, other.winner.median_s
        pairs_of_both.append(Pair(sweep.title, *medians, same, exchanged, allowed))
    return pairs_of_both
