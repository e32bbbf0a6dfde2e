"""The settings of a band, and the buffers of its voltages on the device."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..corrections.gains import Gains
from ..machine.backend import Backend, DeviceArray, Event, Stream
from ..run.bay import Bay
from ..streams.samples import SampleInfo
from ..streams.voltages import REAL_LOW
from .plan import FShape


@dataclass(frozen=True)
class BandSettings:
    """The settings of a band.

    ``weights``: float32 [taps, L], the prototype filter; L is 2 n_channels, or n_channels for complex samples. For
    complex samples the band gives the weights alternating signs, which moves frequency 0 to channel n_channels / 2.
    """

    n_channels: int
    weights: np.ndarray = field(repr=False)
    bits: int = 8  # bits of the real part of a voltage, and of its imaginary part: 8 or 4
    spectra_per_heap: int = 256
    heaps_per_batch: int = 1
    max_delay_diff: int = 1 << 16  # samples by which delays may differ, between polarisations and in time
    n_buffers: int = 3  # buffers of voltages: one is filled while others are copied out
    nibbles: str = REAL_LOW  # the order of 4-bit parts, as in ``VoltageInfo``
    whole_heaps: bool = False  # whether incomplete heaps are left out, for sinks that cannot mark gaps

    @property
    def window(self) -> int:
        """Returns the number of the engine's input samples in a spectrum."""
        return int(self.weights.size)

    @property
    def middle(self) -> float:
        """Returns the number of samples from a spectrum's timestamp to the middle of its filter."""
        return self.window / 2

    def shape(self, info: SampleInfo) -> FShape:
        """Returns the lengths for the plan. Raises UsageError when the weights do not fit."""
        step = self.n_channels if info.is_complex else 2 * self.n_channels
        if self.weights.ndim != 2 or self.weights.shape[1] != step:
            raise UsageError(f"weights have the shape {list(self.weights.shape)}; they must be [taps, {step}]")
        return FShape(
            step=step,
            window=self.weights.size,
            packet=info.packet,
            spectra_per_heap=self.spectra_per_heap,
            heaps_per_batch=self.heaps_per_batch,
            max_delay_diff=self.max_delay_diff,
            is_complex=info.is_complex,
            whole_heaps=self.whole_heaps,
        )

    def weights_on(self, backend: Backend, stream: Stream, is_complex: bool) -> DeviceArray:
        """Returns the weights on the device, with alternating signs for complex samples."""
        pinned = backend.pinned(self.weights.shape, np.float32)
        weights = backend.empty(self.weights.shape, np.float32)
        pinned[...] = self.weights
        if is_complex:
            pinned.reshape(-1)[1::2] *= -1  # exp(-pi i n): channel 0 is half the sample rate below
        stream.copy_in(weights, pinned)
        stream.record().wait()
        return weights

    def heap_shape(self, n_pols: int) -> tuple[int, ...]:
        """Returns the shape of a heap: int8 [C, spectra_per_heap, n_pols, 2]; at 4 bits without the last axis."""
        pair = () if self.bits == 4 else (2,)
        return (self.n_channels, self.spectra_per_heap, n_pols, *pair)

    def parts(self, n_pols: int) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Returns the shape and the dtype of each array in the memory of ``Voltages``."""
        return {
            "voltages": ((self.heaps_per_batch, 1, *self.heap_shape(n_pols)), np.int8),
            "saturated": ((self.heaps_per_batch, 1, n_pols), np.uint32),
            "total_power": ((n_pols,), np.uint64),
        }


@dataclass(frozen=True)
class BankParts:
    """The parts of a band that its filter bank is made of."""

    bay: Bay
    info: SampleInfo
    settings: BandSettings
    gains: Gains
    stream: Stream
    decimation: int  # input samples of the engine for each sample of the band


@dataclass(frozen=True)
class BatchCounts:
    """The counts of a planned batch."""

    n_missing: int = 0  # missing heaps of the batch, and of a gap before it
    n_spectra_missing: int = 0  # missing spectra, over all polarisations, in the same range
    n_present: int = 0  # spectra that were made in at least one polarisation
    n_beyond: int = 0  # spectra that were left out, since delays differ by more than max_delay_diff


@dataclass(eq=False)  # a buffer is itself, whatever it holds
class Voltages:
    """A buffer of voltages on the device, and its batch. The device's arrays are ready at ``done``."""

    memory: DeviceArray  # uint8, contiguous: the memory of the next three, in this order
    voltages: DeviceArray  # int8 [n_heaps, 1, C, spectra_per_heap, n_pols, 2], without the last axis at 4 bits
    saturated: DeviceArray  # uint32 [n_heaps, 1, n_pols]
    total_power: DeviceArray  # uint64 [n_pols], squares of the samples of all present spectra
    read_at: float = 0.0  # time.monotonic() when the last samples for it had been read
    time: int = 0  # time of the first spectrum
    heaps: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # bool [n_heaps]: whether each is made
    present: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # bool [n_heaps, spectra_per_heap, n_pols]
    counted: BatchCounts = field(default_factory=BatchCounts)
    done: Event | None = None
    free: tuple[Event, ...] = ()  # the events after which the buffer may be used again

    @property
    def with_holes(self) -> list[int]:
        """Returns the numbers of heaps that are made, but lack spectra."""
        n = len(self.heaps)
        return [int(heap) for heap in np.flatnonzero(self.heaps & ~self.present.reshape(n, -1).all(axis=1))]

    @cached_property
    def counts(self) -> DeviceArray:
        """Returns the part of ``memory`` with the counts: saturated and total_power."""
        return self.memory[self.voltages.nbytes :]
