"""Exact times of streams: rational numbers of seconds since 1970, UTC.

They count 86400 seconds in a day, as in POSIX; a leap second has the number of the second after it.
"""

import math
import re
from fractions import Fraction
from numbers import Rational
from typing import Any

from ...core import schema
from ...core.errors import UsageError

# The first seconds after the leap seconds since 2000 (IERS, Bulletin C 30, 36, 43, 49 and 52,
# https://hpiers.obspm.fr/eoppc/bul/bulc): beginnings of 2006, 2009, July 2012, July 2015 and 2017. A new
# one is added here when a bulletin announces it; astropy knows it, too, and a test compares them.
LEAPS = (1136073600, 1230768000, 1341100800, 1435708800, 1483228800)
MOST_S = 10**12  # before and after 1970
MOST_DIGITS = 20  # digits after the point in a decimal number
DECIMAL = re.compile(r"[+-]?(?:\d{1,40}\.?(\d{0,60})|\.(\d{1,60}))(?:[eE]([+-]?\d{1,2}))?")
RATIO = re.compile(r"[+-]?\d{1,300}/0*[1-9]\d{0,299}")  # as long as a sum of decimal numbers may become


def moment(value: Any) -> Fraction:
    """Checks for a time: an integer, a float or a Fraction, or text such as "1700000000.123456789012" or "p/q".

    A float has its own value, a multiple of about 2^-22 s; text is exact.

    Raises:
        Unsound: for anything else.
    """
    is_text = isinstance(value, str) and (DECIMAL.fullmatch(value) or RATIO.fullmatch(value))
    is_number = isinstance(value, Rational) and not isinstance(value, bool)
    is_float = isinstance(value, float) and math.isfinite(value)
    time = Fraction(value) if is_text or is_number or is_float else None
    if time is None or abs(time) > MOST_S:
        raise schema.Unsound(
            f"is {schema.value_text(value)}, must be seconds since 1970, at most {MOST_S:g}: a number, or text for all "
            'of its digits, as "1700000000.123456789012" or "5100000000/3"'
        )
    return time


def exact_time(value: int | float | Fraction | str) -> Fraction:
    """Returns a time from any value that ``moment`` takes.

    Raises:
        UsageError: for any other value, in one line.
    """
    try:
        return moment(value)
    except schema.Unsound as error:
        raise UsageError(f"a time {error}") from None


def time_text(time: Fraction) -> str:
    """Returns a time as text for ``exact_time``: a decimal number if 20 digits are exact, else "p/q"."""
    if 10**MOST_DIGITS % time.denominator:
        return f"{time.numerator}/{time.denominator}"
    digits = f"{abs(time.numerator) * 10**MOST_DIGITS // time.denominator:0{MOST_DIGITS + 1}d}"
    whole, part = digits[:-MOST_DIGITS], digits[-MOST_DIGITS:].rstrip("0")
    return f"{'-' if time < 0 else ''}{whole}{part and '.'}{part}"


def stored_time(time: Fraction) -> float | str:
    """Returns a time for a file, which ``exact_time`` reads: a float if that is exact, else text."""
    return float(time) if Fraction(float(time)) == time else time_text(time)


def step_of(number: str | float | Fraction) -> Fraction:
    """Returns the resolution of a number in this notation: 10^-3 for "1.250", 2^-52 for the float 1.25.

    It is 0 for whole numbers, halves and fractions, which are exact.
    """
    if isinstance(number, float):
        return Fraction(0) if number.is_integer() else Fraction(math.ulp(number))
    match = DECIMAL.fullmatch(number) if isinstance(number, str) else None
    if match is None or Fraction(number).denominator <= 2:
        return Fraction(0)
    return Fraction(10) ** (int(match[3] or 0) - len(match[1] or match[2] or ""))


def leap_seconds(start: Fraction, elapsed_s: Fraction) -> int:
    """Returns the number of leap seconds in ``elapsed_s`` seconds after ``start``."""
    n = 0
    for leap in LEAPS:
        n += start < leap <= start + elapsed_s - n - 1
    return n
