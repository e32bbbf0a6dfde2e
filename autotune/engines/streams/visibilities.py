"""Visibilities of baselines, in dumps, and what takes them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .phase_centre import PhaseCentre
from .samples import SampleInfo

MISSING = -(2**31)  # the real part of a product without all of its data, and of no other


@dataclass(frozen=True)
class VisibilityInfo:
    """The visibilities of some antennas, as an X-engine makes them."""

    n_channels: int
    dump_samples: int  # length of an integration
    antennas: tuple[SampleInfo, ...]
    centre_frequency_hz: float | None = None  # frequency of channel n_channels / 2
    channel_width_hz: float = 0.0
    gains: tuple[tuple[float, ...], ...] | None = None  # of each antenna, if they were chosen by the samples' level
    is_delayed: bool = False  # delays were given for an antenna, which stop fringes
    phase_centre: PhaseCentre | None = None  # whose fringes they stop, if that was said
    middle_samples: float | None = None  # from a dump's timestamp to the middle of its samples; None: not known

    @property
    def middle(self) -> float:
        """Returns the samples from a dump's timestamp to its middle; half a dump where filters are not known."""
        return self.dump_samples / 2 if self.middle_samples is None else self.middle_samples

    @property
    def n_baselines(self) -> int:
        return len(self.antennas) * (len(self.antennas) + 1) // 2


class VisibilitySink(Protocol):
    """Takes dumps in the order of time."""

    def write(self, timestamp: int, visibilities: np.ndarray, present: np.ndarray, saturated: int) -> None:
        """Take int32 [C, n_baselines, 4, 2] and bool [n_antennas]: the arrays are used again afterwards.

        Baselines are (j, i) with i <= j, i fastest; their products are aa, ba, ab, bb of the polarisations (a, b) of
        antenna i times the conjugate of those of antenna j; a baseline without all of its data is (-2^31, 1).

        Raises:
            UsageError: when it cannot be stored; what was taken before stands.
        """

    def close(self) -> None: ...
