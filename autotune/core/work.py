"""The work of a problem, and the rates and the share of the roofline that follow from a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .device import Ceilings


@dataclass(frozen=True)
class Work:
    """The work that every variant must do: floating-point (or integer) operations, and bytes moved once.

    ``bytes``: by default those of the definition's arrays, each read and written once; ``Kernel.work`` fills them in.
    ``unit``: the unit that the roofline assumes: float32 cores, or tensor cores on float16 or int8.
    """

    flops: float = 0.0
    bytes: float = -1.0  # -1: not stated
    unit: str = "float32"

    def __post_init__(self) -> None:
        if self.unit not in ("float32", "float16", "int8"):
            raise ValueError(f"unit={self.unit} must be float32, float16 or int8")


def floor_s(work: Work, ceilings: Ceilings) -> float:
    """Returns the least seconds: the larger of bytes over the rate of copies and operations over the unit's rate.

    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
    """
    by_unit = {"float16": ceilings.float16_per_s, "int8": ceilings.int8_per_s}
    rate = by_unit.get(work.unit, 0.0) or ceilings.flops_per_s  # the device may lack the unit
    return max(work.bytes / ceilings.bytes_per_s, work.flops / rate)


def rates_of(work: Work, ceilings: Ceilings | None) -> Mapping[str, Callable[[float], float]]:
    """Returns the figures of a trial that follow from its median in seconds, as functions of it, by name.

    ``efficiency``, the share of the roofline, is missing without measured ceilings.
    """
    rates: dict[str, Callable[[float], float]] = {
        "gb_per_s": lambda median_s: _rounded(work.bytes / median_s / 1e9),
        "tflop_per_s": lambda median_s: _rounded(work.flops / median_s / 1e12),
    }
    if ceilings is not None:
        least_s = floor_s(work, ceilings)
        rates["efficiency"] = lambda median_s: _rounded(least_s / median_s)
    return rates


def _rounded(rate: float) -> float:
    """Returns a rate with as many digits as times have."""
    return float(f"{rate:.7g}")
