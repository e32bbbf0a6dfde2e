"""Formats times, shares, numbers of things and long lines for people."""

import re

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


def is_difference(interval: tuple[float, float] | None) -> bool:
    """Returns whether an interval of a speed-up shows one, since it does not contain 1; true without an interval."""
    return interval is None or not interval[0] <= 1 <= interval[1]


def speed_up_text(speed_up: float, interval: tuple[float, float] | None) -> str:
    """Returns a speed-up over the default with its interval, or that no difference was found."""
    sure = f"{interval[0]:.3f} to {interval[1]:.3f} from the 95 % intervals" if interval else ""
    if not is_difference(interval):
        return f"no difference found: {speed_up:.3f} x the default, {sure}"
    return f"{speed_up:.3f} x the default" + (f" ({sure})" if sure else "")


def speed_up_cell(speed_up: float | None, interval: tuple[float, float] | None) -> str:
    """Returns a speed-up for a table."""
    if speed_up is None:
        return "-"
    return f"{speed_up:.3f}" if is_difference(interval) else "none found"


def broken_at_commas(text: str, width: int) -> list[str]:
    """Returns ``text`` in lines of at most ``width`` characters, broken after commas; a longer part stays whole."""
    lines = [""]
    for part in re.split("(?<=,)", text):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return lines
