"""What was measured near a problem, and how far away that is. Only ratios within one sweep are used, never times."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

from ..core.config import Config
from ..core.definition import Device

SAME_DEVICE, SAME_ARCHITECTURE, OTHER_DEVICE = 0, 1, 2
AWAY = {SAME_DEVICE: 0.0, SAME_ARCHITECTURE: 1.0, OTHER_DEVICE: 3.0}  # octaves that a foreign device counts as
MISMATCH = 8.0  # octaves that two different words or truth values count as


@dataclass(frozen=True)
class Neighbour:
    """A recorded sweep near the problem; ``measured``: its configurations with median / best median, best first."""

    problem: Mapping[str, object]
    device: Device
    kinship: int  # SAME_DEVICE, SAME_ARCHITECTURE or OTHER_DEVICE
    distance: float  # octaves: the sum over the problem's fields of |log2 ratio|, MISMATCH where there is no ratio
    measured: tuple[tuple[Config, float], ...]


def octave(value: float) -> float:
    """Returns log2 of a number, continued below for zero and negative numbers; distances are in this unit."""
    return log2(value) if value > 0 else -1 - log2(1 - value)
