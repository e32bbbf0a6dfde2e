"""Visibilities of baselines, in dumps, and the interface of their sinks."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .phase_centre import PhaseCentre
from .samples import SampleInfo

MISSING = -(2**31)  # the real part of products of a baseline without data; no other product has it


@dataclass(frozen=True)
class VisibilityInfo:
    """The header of an X-engine's visibilities."""

    n_channels: int
    dump_samples: int  # length of an integration
    dump_spectra: int  # spectra in an integration, which is the weight of a complete product
    antennas: tuple[SampleInfo, ...]
    centre_frequency_hz: float | None = None  # frequency of channel n_channels / 2
    channel_width_hz: float = 0.0
    gains: tuple[tuple[float, ...], ...] | None = None  # gains of each antenna, if they follow from the samples' level
    is_delayed: bool = False  # whether an antenna was given delays, which stop fringes
    phase_centre: PhaseCentre | None = None  # the direction whose fringes are stopped, if it is known
    middle_samples: float | None = None  # samples from a dump's timestamp to its middle; None if it is not known
    n_pols: int = 2  # polarisations of each antenna: two make the products aa, ba, ab, bb, and one makes only aa

    @property
    def middle(self) -> float:
        """Returns the number of samples from a dump's timestamp to its middle; half a dump if it is not known."""
        return self.dump_samples / 2 if self.middle_samples is None else self.middle_samples

    @property
    def n_baselines(self) -> int:
        return len(self.antennas) * (len(self.antennas) + 1) // 2

    @property
    def n_products(self) -> int:
        return self.n_pols**2

    def whole_antennas(self, weights: np.ndarray) -> np.ndarray:
        """Returns whether each antenna is complete, bool [.., n_antennas].

        ``weights``: uint32 [.., n_baselines, n_products].
        """
        own = np.arange(1, len(self.antennas) + 1)
        return np.asarray((weights[..., own * (own + 1) // 2 - 1, :] == self.dump_spectra).all(axis=-1))


class VisibilitySink(Protocol):
    """Takes dumps in the order of time."""

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Take int32 [C, n_baselines, n_products, 2] and uint32 [n_baselines, n_products]. The caller reuses them.

        Baselines are (j, i) with i <= j, i fastest. Their products are aa, ba, ab, bb of the polarisations (a, b) of
        antenna i times the conjugate of those of antenna j; with one polarisation only aa. A product is a sum over the
        spectra that both polarisations have, whose number is its weight; it is not divided by it. A baseline without
        data is (-2^31, 1).

        Raises:
            UsageError: when it cannot be stored; earlier dumps stay.
        """

    def close(self) -> None: ...
