"""Visibilities of baselines, in dumps, and the interface of their sinks."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .phase_centre import PhaseCentre
from .polarisations import BASES, basis_of
from .samples import SampleInfo, places_of

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
    n_pols: int = 2  # places of polarisations: two make the products aa, ba, ab, bb, and one makes only aa

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

    @property
    def places(self) -> tuple[int, ...]:
        """Returns the places of a and b in products: 0 and 1, or the one of all antennas."""
        return places_of(self.antennas)

    @property
    def are_named(self) -> bool:
        """Returns whether something names the polarisations of each antenna."""
        return all(antenna.polarisations for antenna in self.antennas)

    @property
    def bases(self) -> tuple[str, ...]:
        """Returns the pair of names of each antenna; one that has none is called as the first that has, or XY."""
        found = [basis_of(antenna.polarisations) for antenna in self.antennas]
        return tuple(basis or next(filter(None, found), BASES[0]) for basis in found)

    def products(self, i: int, j: int) -> list[str]:
        """Returns the names of products of antennas i and j: first i's polarisation, then j's."""
        here, there = self.bases[i], self.bases[j]
        return [here[p] + there[q] for q in self.places for p in self.places]

    @property
    def product_names(self) -> list[str]:
        """Returns the names of products, if they are known and those of all baselines are the same; else none."""
        return self.products(0, 0) if self.are_named and len(set(self.bases)) == 1 else []

    def label(self, pol: int) -> str:
        """Returns the name of a or b (0 or 1) in all antennas, or its number where nothing names it."""
        names = [basis[self.places[pol]] for basis in self.bases] if self.are_named else [f"pol. {pol}"]
        return "/".join(dict.fromkeys(names))

    def possible(self) -> np.ndarray:
        """Returns whether both antennas have the polarisations of each product: bool [n_baselines, n_products]."""
        has = np.array([[place in antenna.places for place in self.places] for antenna in self.antennas])
        j, i = np.tril_indices(len(has))
        return np.asarray(has[j][:, :, np.newaxis] & has[i][:, np.newaxis]).reshape(self.n_baselines, -1)

    def whole_antennas(self, weights: np.ndarray) -> np.ndarray:
        """Returns whether each antenna is complete, bool [.., n_antennas].

        ``weights``: uint32 [.., n_baselines, n_products].
        """
        own = np.cumsum(np.arange(1, len(self.antennas) + 1)) - 1
        whole = (weights == self.dump_spectra) | ~self.possible()
        return np.asarray(whole[..., own, :].all(axis=-1))


class VisibilitySink(Protocol):
    """Takes dumps in the order of time."""

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Take int32 [C, n_baselines, n_products, 2] and uint32 [n_baselines, n_products]. The caller reuses them.

        Baselines are (j, i) with i <= j, i fastest. Their products are aa, ba, ab, bb of the polarisations (a, b) of
        antenna i times the conjugate of those of antenna j; with one polarisation only aa. a is X, R or H, and b is Y,
        L or V, whatever their order in the recordings. A product is a sum over the spectra that both polarisations
        have, whose number is its weight; it is not divided by it. One whose antenna lacks the polarisation is 0, with
        the weight 0. A baseline without data is (-2^31, 1).

        Raises:
            UsageError: when it cannot be stored; earlier dumps stay.
        """

    def close(self) -> None: ...
