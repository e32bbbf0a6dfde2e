"""Distances of problems and of devices, in octaves, and the numbers by which values enter them."""

from collections.abc import Mapping
from math import fsum, log2
from typing import TypeGuard

from ..core.definition import Device

SAME_DEVICE, SAME_ARCHITECTURE, OTHER_DEVICE = 0, 1, 2
AWAY = {SAME_DEVICE: 0.0, SAME_ARCHITECTURE: 1.0, OTHER_DEVICE: 3.0}  # distance of a device, in octaves
MISMATCH = 8.0  # distance of two different words or truth values, in octaves


def is_number(value: object) -> TypeGuard[float]:
    """Returns whether ``value`` is a number, and not a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def octave(value: float) -> float:
    """Returns log2 of a positive number; for others a continuation to lower values. Distances are in this unit."""
    return log2(value) if value > 0 else -1 - log2(1 - value)


def apart(one: Mapping[str, object], other: Mapping[str, object]) -> float:
    """Returns the distance of two problems in octaves, in any order of fields: MISMATCH for two words, or for one."""
    return fsum(_apart(one.get(name), other.get(name)) for name in one.keys() | other.keys())


def _apart(a: object, b: object) -> float:
    if a == b and type(a) is type(b):
        return 0.0
    if not is_number(a) or not is_number(b):
        return MISMATCH
    return abs(octave(float(a)) - octave(float(b)))


def kinship(other: Device, device: Device) -> int:
    """Returns SAME_DEVICE, SAME_ARCHITECTURE or OTHER_DEVICE."""
    if other.arch != device.arch:
        return OTHER_DEVICE
    return SAME_DEVICE if other.name == device.name else SAME_ARCHITECTURE
