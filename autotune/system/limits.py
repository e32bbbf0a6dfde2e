"""Ranges for numbers from sweeps, campaigns, commands and the environment."""

import os
from dataclasses import dataclass

from ..core.errors import UsageError

MANY = 10**9
LONGEST_S = 1e6  # 11 days: poll takes milliseconds in 32 bits


@dataclass(frozen=True)
class Range:
    """A range of integers or seconds from ``least`` to ``most`` inclusive; with ``may_lack`` also None."""

    least: float
    most: float
    is_integer: bool = True
    may_lack: bool = False
    unit: str = ""

    def holds(self, value: object) -> bool:
        """Returns whether ``value`` is in the range."""
        if value is None:
            return self.may_lack
        if isinstance(value, bool) or not isinstance(value, int if self.is_integer else (int, float)):
            return False
        return self.least <= value <= self.most  # false for nan

    @property
    def brief(self) -> str:
        """Returns the limits for help; one that nobody reaches is not named."""
        return f"from {self.least:g}" + (f" to {self.most:.0f}" if self.most < MANY else "")

    def __str__(self) -> str:
        what = "an integer" if self.is_integer else "a finite number"
        most = f"{self.most:.0f}" if self.is_integer and self.most < MANY else f"{self.most:g}"
        return f"{what} from {self.least:g} to {most}{', or nothing' if self.may_lack else ''}"


COUNT = Range(1, MANY)
FROM_ZERO = Range(0, MANY)
SEED = Range(0, 2**32 - 1)  # the range that random generators accept
SAMPLES = Range(3, 10**6)
DURATION = Range(0.0, LONGEST_S, is_integer=False, unit="s")
REGRET = Range(0.0, 1000.0, is_integer=False)
BYTES = Range(0.0, 1e18, is_integer=False)
DEADLINE = Range(1e-3, LONGEST_S, is_integer=False, unit="s")


def check_number(name: str, value: object, allowed: Range) -> None:
    """Raises UsageError for a value outside its range."""
    if not allowed.holds(value):
        raise UsageError(f"{name}={value!r} must be {allowed}")


def from_environment(name: str, default: float, allowed: Range) -> float:
    """Returns the number in the environment variable ``name``, or ``default``.

    Raises:
        UsageError: for any other text, or a number that is not ``allowed``.
    """
    text = os.environ.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = float("nan")  # no range contains it
    if not allowed.holds(value):
        raise UsageError(f"{name}={text!r} in the environment must be {allowed}")
    return value


def check_type(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Raises UsageError unless ``value`` is of one of ``kinds``, which ``wanted`` describes in words."""
    if not is_of(value, kinds if isinstance(kinds, tuple) else (kinds,)):
        raise UsageError(f"{name}={value!r} must be {wanted}")


def is_of(value: object, kinds: tuple[type, ...]) -> bool:
    """Returns whether ``value`` is of one of ``kinds``; true and false are not integers."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
