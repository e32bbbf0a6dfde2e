"""Finds which part of the measured roofline bounds a sweep's configs: the transfer of bytes, or one unit's arithmetic.

A record contains each trial's rates and its share of the roofline, but not the unit of the definition's operations. The
limit and the unit follow from them: the share is the larger of the two rates, each divided by its own ceiling.
"""

from dataclasses import asdict, dataclass

from ..records.record import SweepRecord

BYTES = "bytes_per_s"
UNITS = {
    "flops_per_s": "float32",
    "float16_per_s": "tensor cores, float16",
    "int8_per_s": "tensor cores, int8",
}
NEAR = 0.03  # each run of a sweep measures the ceilings again, and they differ by less


@dataclass(frozen=True)
class RooflineLimit:
    """The limit of a sweep's configs. ``least_s``: the least time, in seconds, that the roofline allows.

    ``units``: the names in UNITS that agree with the record. If bytes are the limit, there may be several, with the
    same limit.
    """

    least_s: float
    by_bytes: bool
    units: tuple[str, ...]

    @property
    def name(self) -> str:
        """Returns the bound of the configs: "bytes", or the arithmetic unit."""
        return "bytes" if self.by_bytes else UNITS[self.units[0]]

    @property
    def reason(self) -> str:
        """Returns the subject of a sentence about the least time."""
        return "moving the bytes takes" if self.by_bytes else f"the arithmetic on {self.name} takes"


def ceilings_of(sweep: SweepRecord) -> dict[str, float]:
    """Returns name -> rate of the measured roofline; {} if it is unknown."""
    measured = sweep.outcome.ceilings if sweep.outcome else None
    ceilings = {name: value for name, value in asdict(measured).items() if value > 0} if measured else {}
    return ceilings if BYTES in ceilings and any(name in ceilings for name in UNITS) else {}


def limit_of(sweep: SweepRecord) -> RooflineLimit | None:
    """Returns the limit of a sweep's configs; None if the record does not determine it.

    All configs do the same work, so the fastest one of the search determines it.
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
        return None  # the share was computed with another roofline
    return RooflineLimit(share * fastest.median_s, by_bytes, units)
