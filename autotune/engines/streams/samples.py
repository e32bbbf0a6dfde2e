"""Samples of one antenna for an F-engine, and the interface of their sources.

Times are samples since a stream's zero, which is ``sync_time_unix`` if that is known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from .polarisations import place_of
from .times import exact_time

COMPLEX_BITS = 64  # sample_bits of complex float32
MOUNTS = "alt-az", "equatorial", "x-y", "alt-az+nasmyth-r", "alt-az+nasmyth-l", "phased", "fixed", "orbiting", "other"


@dataclass(frozen=True)
class SampleInfo:
    """The samples of one antenna."""

    sample_bits: int  # packed two's complement of 2 to 16 bits, most significant bit first; 64: complex float32
    n_pols: int  # polarisations, 1 or 2
    sample_rate_hz: float
    packet: int  # samples that come, or are missing, as a whole; they fill whole bytes
    n_samples: int | None = None  # samples of each polarisation, including missing ones; None if it is not known
    first_timestamp: int = 0
    antenna: str = ""
    position_m: tuple[float, float, float] | None = None  # geocentric: x, y, z
    centre_frequency_hz: float | None = None
    sync_time_unix: Fraction | None = None  # exact UTC when the stream's time was 0; exact_time converts arguments
    is_turned: bool = False  # whether the recording's band fell with frequency, and was reversed by the reader
    polarisations: str = ""  # their names in the order of the samples, such as RL; empty if nothing says them
    first_pol: int = 0  # the place of the first polarisation in products, where nothing names it
    telescope: str = ""  # the name of the telescope, or of the array; empty if nothing says it
    observer: str = ""
    mount: str = ""  # one of ``MOUNTS``
    dish_diameter_m: float | None = None

    def __post_init__(self) -> None:
        if self.sync_time_unix is not None:
            object.__setattr__(self, "sync_time_unix", exact_time(self.sync_time_unix))
        object.__setattr__(self, "polarisations", self.polarisations.upper())

    @property
    def is_complex(self) -> bool:
        return self.sample_bits == COMPLEX_BITS

    @property
    def bandwidth_hz(self) -> float:
        """Returns the width of the samples' band: the sample rate, or half of it for real samples."""
        return self.sample_rate_hz / (1 if self.is_complex else 2)

    @property
    def places(self) -> tuple[int, ...]:
        """Returns the place of each polarisation in products, 0 or 1; their order gives it where nothing names them."""
        unnamed = tuple(range(self.first_pol, self.first_pol + self.n_pols))
        return tuple(map(place_of, self.polarisations[: self.n_pols])) or unnamed

    def label(self, pol: int) -> str:
        """Returns a polarisation's name, or its number where nothing names it."""
        return self.polarisations[pol : pol + 1] or str(self.first_pol + pol)


def places_of(antennas: Iterable[SampleInfo]) -> tuple[int, ...]:
    """Returns the places that any of the antennas' polarisations have in products: (0, 1), (0,) or (1,)."""
    return tuple(sorted({place for antenna in antennas for place in antenna.places}))


@dataclass(frozen=True)
class Samples:
    """The time of a chunk, and the packets of it that came."""

    time: int  # time of the first sample
    received: np.ndarray  # bool [n_pols, n_packets]


class Source(Protocol):
    """Samples of one antenna, in chunks, in the order of time."""

    info: SampleInfo
    is_live: bool  # whether samples come at their own pace, so that a late engine drops whole chunks

    def read(self, out: np.ndarray) -> Samples | None:
        """Fill ``out`` with the next packets. Returns None at the end.

        ``out``: uint8 [n_pols, n_bytes], or complex64 [n_pols, n_samples], with whole packets. A chunk has fewer
        packets only at the end of the data, or of one of several files. Packets between the chunk before and this one
        are missing: in long gaps whole chunks are left out. The content of a missing packet does not matter.

        Raises:
            UsageError: for a damaged source; the text says where. Earlier chunks stay valid.
        """

    def close(self) -> None: ...
