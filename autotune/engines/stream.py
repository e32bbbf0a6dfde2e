"""The inputs and outputs of engines: streams of samples, of voltages and of visibilities.

A file, an array in memory or a network is a ``Source`` or a sink. Times are samples since a stream's zero, which is
``sync_time_unix`` where that is known.
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
        at the end of what is there, and only there. Packets between the chunk before and this one never came: where
        many are missing, whole chunks are left out. What is written where a packet is missing does not matter.

        Raises:
            UsageError: for a source that is damaged; says where. What was read before stands.
        """

    def close(self) -> None: ...


@dataclass(frozen=True)
class PhaseCentre:
    """The direction whose fringes delays stop: ICRS, by its right ascension, or apparent, by an hour angle.

    An hour angle is seen at a longitude at a time, seconds since 1970, UTC. Angles are in degrees.
    """

    declination_deg: float
    right_ascension_deg: float | None = None
    hour_angle_deg: float | None = None
    longitude_deg: float | None = None
    time_unix: Fraction | None = None
    name: str = "phase centre"


@dataclass(frozen=True)
class VoltageInfo:
    """The voltages of one antenna, as an F-engine makes them."""

    n_channels: int
    n_pols: int
    bits: int  # bits of the real part of a voltage, and of its imaginary part: 8 or 4
    spectra_per_heap: int
    step: int  # samples from one spectrum to the next
    samples: SampleInfo  # the samples that the voltages were made of
    centre_frequency_hz: float | None = None  # frequency of channel n_channels / 2
    channel_width_hz: float = 0.0
    gain: tuple[float, ...] | None = None  # of each polarisation, if it was chosen by the level of the samples
    is_delayed: bool = False  # delays were given, which stop fringes
    phase_centre: PhaseCentre | None = None  # whose fringes they stop, if that was said

    @property
    def heap_shape(self) -> tuple[int, ...]:
        """Returns the shape of a heap: int8 [C, spectra_per_heap, n_pols, 2], without the last axis at 4 bits.

        At 4 bits a byte has the real part in its low nibble and the imaginary part in its high one.
        """
        shape = (self.n_channels, self.spectra_per_heap, self.n_pols)
        return shape if self.bits == 4 else (*shape, 2)

    @property
    def heap_samples(self) -> int:
        """Returns the samples from one heap to the next."""
        return self.spectra_per_heap * self.step


class VoltageSink(Protocol):
    """Takes voltages, heap by heap in the order of time; those with holes are left out."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray) -> None:
        """Take int64 [n], int8 [n, *heap_shape] and uint32 [n, n_pols]: the arrays are used again afterwards.

        Raises:
            UsageError: when they cannot be stored; what was taken before stands.
        """

    def close(self) -> None: ...


@dataclass(frozen=True)
class Batches:
    """A chunk of voltages that was read: where it starts, and which of its heaps came."""

    time: int  # time of the first batch
    present: np.ndarray  # bool [n_batches, n_antennas]


class VoltageSource(Protocol):
    """Voltages of several antennas, in chunks, in the order of time. A batch is the heaps of one time."""

    antennas: tuple[VoltageInfo, ...]  # they differ in their samples only
    is_live: bool  # means the same as that of a Source

    def read(self, out: np.ndarray) -> Batches | None:
        """Fill ``out`` with the next batches; returns None at the end.

        ``out``: int8 [n_batches, n_antennas, *heap_shape]. A chunk may have fewer batches. No heap of those between the
        chunk before and this one came. What is written where a heap is missing does not matter.

        Raises:
            UsageError: for a source that is damaged; says where. What was read before stands.
        """

    def close(self) -> None: ...


@dataclass(frozen=True)
class VisibilityInfo:
    """The visibilities of some antennas, as an X-engine makes them."""

    n_channels: int
    dump_samples: int  # length of an integration
    antennas: tuple[SampleInfo, ...]
    centre_frequency_hz: float | None = None  # frequency of channel n_channels / 2
    channel_width_hz: float = 0.0
    gains: tuple[tuple[float, ...], ...] | None = None  # of each antenna, if they were chosen by the samples' level
    phase_centre: PhaseCentre | None = None  # whose fringes delays stopped, if that was said

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
