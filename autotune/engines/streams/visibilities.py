"""Visibilities of baselines, in dumps, and what takes them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .phase_centre import PhaseCentre
from .samples import SampleInfo

MISSING = -(2**31)  # the real part of a product of a baseline without data, and of no other


@dataclass(frozen=True)
class VisibilityInfo:
    """The visibilities of some antennas, as an X-engine makes them."""

    n_channels: int
    dump_samples: int  # length of an integration
    dump_spectra: int  # spectra of an integration: the weight of a product from which nothing is missing
    antennas: tuple[SampleInfo, ...]
    centre_frequency_hz: float | None = None  # frequency of channel n_channels / 2
    channel_width_hz: float = 0.0
    gains: tuple[tuple[float, ...], ...] | None = None  # of each antenna, if they were chosen by the samples' level
    is_delayed: bool = False  # delays were given for an antenna, which stop fringes
    phase_centre: PhaseCentre | None = None  # whose fringes they stop, if that was said
    middle_samples: float | None = None  # from a dump's timestamp to the middle of its samples; None: not known
    n_pols: int = 2  # of each antenna: two have the products aa, ba, ab, bb, one has aa alone

    @property
    def middle(self) -> float:
        """Returns the samples from a dump's timestamp to its middle; half a dump where filters are not known."""
        return self.dump_samples / 2 if self.middle_samples is None else self.middle_samples

    @property
    def n_baselines(self) -> int:
        return len(self.antennas) * (len(self.antennas) + 1) // 2

    @property
    def n_products(self) -> int:
        return self.n_pols**2

    def whole_antennas(self, weights: np.ndarray) -> np.ndarray:
        """Returns the antennas of which nothing is missing, bool [.., n_antennas].

        ``weights``: uint32 [.., n_baselines, n_products].
        """
        own = np.arange(1, len(self.antennas) + 1)
        return np.asarray((weights[..., own * (own + 1) // 2 - 1, :] == self.dump_spectra).all(axis=-1))


class VisibilitySink(Protocol):
    """Takes dumps in the order of time."""

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Take int32 [C, n_baselines, n_products, 2] and uint32 [n_baselines, n_products], which are used again.

        Baselines are (j, i) with i <= j, i fastest; their products are aa, ba, ab, bb of the polarisations (a, b) of
        antenna i times the conjugate of those of antenna j; of one polarisation aa. A product is a sum over as many
        spectra as its weight says, those that both polarisations have, and not divided by it. A baseline without any
        is (-2^31, 1).

        Raises:
            UsageError: when it cannot be stored; what was taken before stands.
        """

    def close(self) -> None: ...
