"""Voltages of channels, in heaps, and what takes or gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ...core.errors import UsageError
from .phase_centre import PhaseCentre
from .samples import SampleInfo

REAL_LOW, REAL_HIGH = "real_low", "real_high"  # which nibble of a byte has the real part of a voltage of 4 bits


def check_nibbles(nibbles: str, bits: int) -> None:
    """Raises UsageError where voltages of so many bits have no such nibbles."""
    if nibbles not in (REAL_LOW, REAL_HIGH):
        raise UsageError(f"nibbles={nibbles} must be {REAL_LOW} or {REAL_HIGH}")
    if nibbles == REAL_HIGH and bits != 4:
        raise UsageError(f"nibbles={nibbles} is for bits=4; with bits={bits} each part has a byte of its own")


@dataclass(frozen=True)
class VoltageInfo:
    """The voltages of one antenna, as an F-engine makes them.

    Raises:
        UsageError: for ``nibbles`` that voltages of ``bits`` do not have.
    """

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
    nibbles: str = REAL_LOW  # of 4 bits: REAL_LOW or REAL_HIGH
    middle_samples: float | None = None  # from a spectrum's timestamp to the middle of its filter; None: not known

    def __post_init__(self) -> None:
        check_nibbles(self.nibbles, self.bits)

    @property
    def heap_shape(self) -> tuple[int, ...]:
        """Returns the shape of a heap: int8 [C, spectra_per_heap, n_pols, 2], without the last axis at 4 bits.

        At 4 bits a byte has both parts, the real one in the nibble that ``nibbles`` names.
        """
        shape = (self.n_channels, self.spectra_per_heap, self.n_pols)
        return shape if self.bits == 4 else (*shape, 2)

    @property
    def heap_samples(self) -> int:
        """Returns the samples from one heap to the next."""
        return self.spectra_per_heap * self.step


class VoltageSink(Protocol):
    """Takes voltages, heap by heap in the order of time; heaps of which nothing came are left out."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Take int64 [n], int8 [n, *heap_shape], uint32 [n, n_pols] and bool [n, spectra_per_heap, n_pols].

        Voltages of spectra that are not ``present`` are 0. The arrays are used again afterwards.

        Raises:
            UsageError: when they cannot be stored; what was taken before stands.
        """

    def close(self) -> None: ...


@dataclass(frozen=True)
class Batches:
    """A chunk of voltages that was read: where it starts, and what of it came.

    ``holes``: which spectra came of heaps that lack some: bool [spectra_per_heap, n_pols], by (batch, antenna). The
    voltages of the others are 0.
    """

    time: int  # time of the first batch
    present: np.ndarray  # bool [n_batches, n_antennas]: heaps that came, with holes or without
    holes: Mapping[tuple[int, int], np.ndarray] = field(default_factory=dict)


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
