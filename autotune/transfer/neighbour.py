"""Recorded sweeps near a problem, and their distances. Only ratios within one sweep are used, never times."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

from ..core.config import Config
from ..core.definition import Device

SAME_DEVICE, SAME_ARCHITECTURE, OTHER_DEVICE = 0, 1, 2
AWAY = {SAME_DEVICE: 0.0, SAME_ARCHITECTURE: 1.0, OTHER_DEVICE: 3.0}  # distance of the device, in octaves
MISMATCH = 8.0  # distance of two different words or truth values, in octaves


@dataclass(frozen=True)
class Neighbour:
    """A recorded sweep near the problem; ``measured``: its configurations with median / best median, best first."""

    problem: Mapping[str, object]
    device: Device
    kinship: int  # SAME_DEVICE, SAME_ARCHITECTURE or OTHER_DEVICE
    distance: float  # octaves: the sum of |log2 ratio| over the problem's fields, or MISMATCH where there is no ratio
    measured: tuple[tuple[Config, float], ...]


def octave(value: float) -> float:
    """Returns log2 of a positive number; for others a continuation to lower values. Distances are in this unit."""
    return log2(value) if value > 0 else -1 - log2(1 - value)


def apart(one: Mapping[str, object], other: Mapping[str, object]) -> float:
    """Returns the distance of two problems in octaves: MISMATCH for two words, and for a field that one lacks."""
    return sum(_apart(one.get(name), other.get(name)) for name in one.keys() | other.keys())


def _apart(a: object, b: object) -> float:
    if a == b and type(a) is type(b):
        return 0.0
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in (a, b)):
        return MISMATCH
    return abs(octave(float(a)) - octave(float(b)))  # type: ignore[arg-type]


def kinship(other: Device, device: Device) -> int:
    """Returns SAME_DEVICE, SAME_ARCHITECTURE or OTHER_DEVICE."""
    if other.arch != device.arch:
        return OTHER_DEVICE
    return SAME_DEVICE if other.name == device.name else SAME_ARCHITECTURE
