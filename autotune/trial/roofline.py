"""Computes the least time that a problem needs on a device, and its share of a measured time."""

from dataclasses import dataclass

from ..core.definition import Work
from ..devices.base import Ceilings


@dataclass(frozen=True)
class Rates:
    """The rates of a median for the stated work. ``efficiency`` is None without measured ceilings."""

    gb_per_s: float
    tflop_per_s: float
    efficiency: float | None


def floor_s(work: Work, ceilings: Ceilings) -> float:
    """Returns seconds: the larger of bytes over the copy's rate and operations over the rate of their best unit.

    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
    """
    return max(work.bytes / ceilings.bytes_per_s, work.flops / ceilings.of(work.unit))


def rates(work: Work, median_s: float, ceilings: Ceilings | None) -> Rates:
    """Returns the rates of ``work`` in ``median_s``."""
    return Rates(
        gb_per_s=work.bytes / median_s / 1e9,
        tflop_per_s=work.flops / median_s / 1e12,
        efficiency=floor_s(work, ceilings) / median_s if ceilings else None,
    )
