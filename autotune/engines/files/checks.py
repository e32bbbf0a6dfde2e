"""Checks of values in headers and attributes. Each returns the value, or raises ``Unsound``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import schema
from ...system.limits import Range
from ..streams.polarisations import polarisations
from ..streams.samples import COMPLEX_BITS, MOUNTS
from ..streams.times import moment

MOST_RATE_HZ = 1e13
MOST_TIME = 1 << 62  # timestamps are exact up to this one
MOST_FIRST = 1 << 61  # the largest first timestamp, which leaves room for samples and delays
MOST_CHANNELS = 1 << 24
MOST_SPECTRA = 1 << 20
CHANNELS = Range(1, MOST_CHANNELS)
MOST_STEP = 1 << 40
MOST_ANTENNAS = 1 << 14
ALL_OTHERS = "*"  # stands for all antennas that are not named


def check(holds: Callable[[Any], bool], must: str, result: Callable[[Any], Any] = lambda value: value) -> schema.Check:
    """Returns a check for values that ``holds`` accepts; the error says what they ``must`` be."""

    def checked(value: object) -> Any:
        if not holds(value):
            raise schema.Unsound(f"is {schema.value_text(value)}, must be {must}")
        return result(value)

    return checked


def real(value: object) -> float:
    """Checks for a number."""
    return float(schema.as_number(value))


def integer(least: int, most: int) -> schema.Check:
    """Returns a check for an integer from ``least`` to ``most``."""
    return check(lambda value: type(value) is int and least <= value <= most, f"an integer, {least} to {most}")


def within(least: float, most: float) -> schema.Check:
    """Returns a check for a number from ``least`` to ``most``."""
    return check(lambda value: least <= real(value) <= most, f"{least:g} to {most:g}", float)


def below(most: float) -> schema.Check:
    """Returns a check for a number between -``most`` and ``most``."""
    return check(lambda value: -most < real(value) < most, f"between -{most:g} and {most:g}", float)


rate = check(lambda value: 0 < real(value) <= MOST_RATE_HZ, f"more than 0, at most {MOST_RATE_HZ:g}", float)
sample_bits = check(
    lambda value: type(value) is int and (2 <= value <= 16 or value == COMPLEX_BITS),
    f"2 to 16, or {COMPLEX_BITS} for complex float32",
)
voltage_bits = check(lambda value: type(value) is int and value in (4, 8), "4 or 8")  # each part of a voltage has them
beside = check(
    lambda value: bool(schema.as_word(value)) and Path(value).name == value,
    "the name of a file in the header's folder",
    str,
)
REALS = schema.sequence_of(real)
ROWS_OF_REALS = schema.sequence_of(REALS)
POSITION = schema.sequence_of(real, 3)


def numbers(kind: type[Any]) -> Callable[[str], tuple[Any, ...]]:
    """Returns what parses numbers with commas between them."""
    return lambda text: tuple(kind(part) for part in text.split(","))


@dataclass(frozen=True)
class HeaderField:
    """A field of a recording's header.

    ``help``: what it is, with its unit; "": no caller gives it. ``check``: raises Unsound for a wrong value. ``parse``:
    returns the value in a text, or raises ValueError.
    """

    help: str
    check: schema.Check
    parse: Callable[[str], Any] = str


SAMPLES: Mapping[str, HeaderField] = {  # ``SampleInfo`` has these
    "sample_bits": HeaderField("", sample_bits),
    "n_pols": HeaderField("", integer(1, 2)),
    "n_samples": HeaderField("", integer(0, MOST_TIME)),
    "first_timestamp": HeaderField("", integer(-MOST_FIRST, MOST_FIRST)),
    "sample_rate_hz": HeaderField("samples per second of each polarisation, Hz", rate, float),
    "antenna": HeaderField("the antenna's name", schema.as_word),
    "position_m": HeaderField("the antenna's geocentric X,Y,Z, m", POSITION, numbers(float)),
    "centre_frequency_hz": HeaderField("the centre of the samples' band, Hz", real, float),
    "sync_time_unix": HeaderField("the time at which the stream's time was 0, s since 1970", moment),
    "polarisations": HeaderField(
        "names of the polarisations that are read, in their order: RL, YX, H", polarisations, str.upper
    ),
    "telescope": HeaderField("the name of the telescope, or of the array", schema.as_word),
    "observer": HeaderField("the observer's name", schema.as_word),
    "mount": HeaderField(f"the antenna's mount: {', '.join(MOUNTS)}", schema.one_of(MOUNTS), str.lower),
    "dish_diameter_m": HeaderField("the diameter of the antenna's dish, m", within(0.01, 1e4), float),
}
CHECKS = {name: one.check for name, one in SAMPLES.items()}
NEEDED = ("sample_bits", "n_pols", "sample_rate_hz")
