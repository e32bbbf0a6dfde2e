"""Formats times, shares and numbers of things for people."""

UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))


def unit_of(value: float) -> tuple[str, float]:
    """Returns the unit that suits a time, and its size in seconds."""
    return next((unit for unit in UNITS if value >= unit[1]), UNITS[-1])


def seconds_text(value: float | None) -> str:
    """Formats a time with four digits in a suitable unit, or "-" for None."""
    if value is None:
        return "-"
    unit, size = unit_of(value)
    return f"{value / size:.4g} {unit}"


def percent(value: float | None) -> str:
    """Formats a share as a percentage, or "-" for None."""
    return "-" if value is None else f"{100 * value:.1f} %"


def counted(n: int, noun: str) -> str:
    """Returns a number of things: 1 sweep, 2 sweeps."""
    return f"{n} {noun}" + "s" * (n != 1)
