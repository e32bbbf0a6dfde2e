"""Samples of one antenna, as an F-engine takes them, and what gives them.

Times are samples since a stream's zero, which is ``sync_time_unix`` where that is known.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from .times import exact_time

COMPLEX_BITS = 64  # sample_bits of complex float32


@dataclass(frozen=True)
class SampleInfo:
    """The samples of one antenna."""

    sample_bits: int  # packed two's complement of 2 to 16 bits, most significant bit first; 64: complex float32
    n_pols: int  # polarisations, 1 or 2
    sample_rate_hz: float
    packet: int  # samples that come together, or are missing together; whole bytes
    n_samples: int | None = None  # samples of each polarisation, missing ones too, as known at first; None: unknown
    first_timestamp: int = 0
    antenna: str = ""
    position_m: tuple[float, float, float] | None = None  # geocentric: x, y, z
    centre_frequency_hz: float | None = None
    sync_time_unix: Fraction | None = None  # UTC when the stream's time was 0, exactly; given as exact_time takes it
    is_turned: bool = False  # the band of the recording fell with frequency, and was turned round when it was read

    def __post_init__(self) -> None:
        if self.sync_time_unix is not None:
            object.__setattr__(self, "sync_time_unix", exact_time(self.sync_time_unix))

    @property
    def is_complex(self) -> bool:
        return self.sample_bits == COMPLEX_BITS


@dataclass(frozen=True)
class Samples:
    """A chunk that was read: where it starts, and which of its packets came."""

    time: int  # time of the first sample
    received: np.ndarray  # bool [n_pols, n_packets]


class Source(Protocol):
    """Samples of one antenna, in chunks, in the order of time."""

    info: SampleInfo
    is_live: bool  # samples come whether they are taken or not: an engine that is late drops whole chunks

    def read(self, out: np.ndarray) -> Samples | None:
        """Fill ``out`` with the next packets; returns None at the end.

        ``out``: uint8 [n_pols, n_bytes], or complex64 [n_pols, n_samples], of whole packets. A chunk has fewer packets
        at the end of what is there, or of one of several files, and only there. Packets between the chunk before and
        this one never came: where many are missing, whole chunks are left out. What is written where a packet is
        missing does not matter.

        Raises:
            UsageError: for a source that is damaged; says where. What was read before stands.
        """

    def close(self) -> None: ...
