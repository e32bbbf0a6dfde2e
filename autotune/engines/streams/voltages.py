"""Voltages of channels, in heaps, and the interfaces of their sinks and sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ...core.errors import UsageError
from .phase_centre import PhaseCentre
from .samples import SampleInfo

REAL_LOW, REAL_HIGH = "real_low", "real_high"  # the nibble with the real part of a 4-bit voltage


def check_nibbles(nibbles: str, bits: int) -> None:
    """Raises UsageError when voltages of ``bits`` cannot have such nibbles."""
    if nibbles not in (REAL_LOW, REAL_HIGH):
        raise UsageError(f"nibbles={nibbles} must be {REAL_LOW} or {REAL_HIGH}")
    if nibbles == REAL_HIGH and bits != 4:
        raise UsageError(f"nibbles={nibbles} is for bits=4; with bits={bits} each part fills a byte")


@dataclass(frozen=True)
class VoltageInfo:
    """The header of an F-engine's voltages of one antenna.

    Raises:
        UsageError: for ``nibbles`` that voltages of ``bits`` cannot have.
    """

    n_channels: int
    n_pols: int
    bits: int  # bits of the real part of a voltage, and of its imaginary part: 8 or 4
    spectra_per_heap: int
    step: int  # samples from one spectrum to the next
    samples: SampleInfo  # the samples from which the voltages were made
    centre_frequency_hz: float | None = None  # frequency of channel n_channels / 2
    channel_width_hz: float = 0.0
    gain: tuple[float, ...] | None = None  # gain of each polarisation, if it follows from the samples' level
    is_delayed: bool = False  # whether delays were given, which stop fringes
    phase_centre: PhaseCentre | None = None  # the direction whose fringes are stopped, if it is known
    nibbles: str = REAL_LOW  # REAL_LOW, or REAL_HIGH with 4 bits
    middle_samples: float | None = None  # samples from a spectrum's timestamp to its filter's middle, if known

    def __post_init__(self) -> None:
        check_nibbles(self.nibbles, self.bits)

    @property
    def heap_shape(self) -> tuple[int, ...]:
        """Returns the shape of a heap: int8 [C, spectra_per_heap, n_pols, 2]; at 4 bits without the last axis.

        At 4 bits a byte has both parts, with the real one in the nibble ``nibbles``.
        """
        shape = (self.n_channels, self.spectra_per_heap, self.n_pols)
        return shape if self.bits == 4 else (*shape, 2)

    @property
    def heap_samples(self) -> int:
        """Returns the number of samples from one heap to the next."""
        return self.spectra_per_heap * self.step


class VoltageSink(Protocol):
    """Takes voltages, heap by heap in the order of time. Heaps without any spectrum are left out."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Take int64 [n], int8 [n, *heap_shape], uint32 [n, n_pols] and bool [n, spectra_per_heap, n_pols].

        Voltages of spectra that are not ``present`` are 0. The caller reuses the arrays.

        Raises:
            UsageError: when they cannot be stored; earlier heaps stay.
        """

    def close(self) -> None: ...


@dataclass(frozen=True)
class Batches:
    """The time of a chunk of voltages, and the heaps and spectra of it that came.

    ``holes``: for heaps that lack spectra, by (batch, antenna), whether each spectrum came: bool [spectra_per_heap,
    n_pols]. The voltages of missing spectra are 0.
    """

    time: int  # time of the first batch
    present: np.ndarray  # bool [n_batches, n_antennas]: heaps that came, with holes or without
    holes: Mapping[tuple[int, int], np.ndarray] = field(default_factory=dict)


class VoltageSource(Protocol):
    """Voltages of several antennas, in chunks, in the order of time. A batch is the heaps of one time."""

    antennas: tuple[VoltageInfo, ...]  # they differ in their samples only
    is_live: bool  # the same as in a Source

    def read(self, out: np.ndarray) -> Batches | None:
        """Fill ``out`` with the next batches. Returns None at the end.

        ``out``: int8 [n_batches, n_antennas, *heap_shape]. A chunk may have fewer batches. All heaps between the chunk
        before and this one are missing. The content of a missing heap does not matter.

        Raises:
            UsageError: for a damaged source; the text says where. Earlier chunks stay valid.
        """

    def close(self) -> None: ...
