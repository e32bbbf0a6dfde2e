"""Finds which part of the measured roofline bounds a sweep's configs: moving their bytes, or one unit's arithmetic.

A record has each trial's rates and its share of the roofline, and not the unit that the definition's operations are
for. Both follow: the share is the larger of the two rates, each over its own ceiling.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..records.record import SweepRecord

BYTES = "bytes_per_s"
UNITS = {
    "flops_per_s": "float32",
    "float16_per_s": "tensor cores, float16",
    "int8_per_s": "tensor cores, int8",
}
NEAR = 0.03  # ceilings are measured anew by each run of a sweep, and differ by less


@dataclass(frozen=True)
class RooflineLimit:
    """``least_s``: the time, in seconds, below which the roofline lets no config of the sweep fall.

    ``units``: the members of the roofline, names of UNITS, that agree with the record. Where bytes are the limit,
    these may be several: the limit is the same with each.
    """

    least_s: float
    by_bytes: bool
    units: tuple[str, ...]

    @property
    def name(self) -> str:
        """Returns what bounds the configs: "bytes", or the unit that computes."""
        return "bytes" if self.by_bytes else UNITS[self.units[0]]

    @property
    def reason(self) -> str:
        """Returns what takes the least time, for people."""
        return "moving the bytes takes" if self.by_bytes else f"the arithmetic takes, on {self.name},"


def ceilings_of(sweep: SweepRecord) -> dict[str, float]:
    """Returns the measured roofline by its members' names; {} where it is not known."""
    recorded: Mapping[str, Any] = (sweep.outcome.content.get("ceilings") if sweep.outcome else None) or {}
    known = {
        name: float(value)
        for name, value in recorded.items()
        if type(value) in (int, float) and isfinite(value) and value > 0
    }
    return known if BYTES in known and any(name in known for name in UNITS) else {}


def limit_of(sweep: SweepRecord) -> RooflineLimit | None:
    """Returns what bounds the configs of a sweep; None where the record does not say it.

    All configs do the same work, so the fastest one of the search tells it.
    """
    ceilings = ceilings_of(sweep)
    fastest = sweep.measured[0] if sweep.measured else None
    if fastest is None or not (ceilings and fastest.median_s and fastest.efficiency and fastest.gb_per_s):
        return None
    share = fastest.efficiency
    shares = {name: 1e12 * (fastest.tflop_per_s or 0.0) / ceilings[name] for name in UNITS if name in ceilings}
    by_bytes = 1e9 * fastest.gb_per_s / ceilings[BYTES] >= (1 - NEAR) * share
    units = tuple(
        name for name, own in shares.items() if own <= (1 + NEAR) * share and (by_bytes or own >= (1 - NEAR) * share)
    )
    if not units:
        return None  # the roofline is not the one that the share was computed with
    return RooflineLimit(share * fastest.median_s, by_bytes, units)
