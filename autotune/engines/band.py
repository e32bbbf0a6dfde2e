"""One band of an F-engine on a device: runs of spectra are filtered into a batch, batches become voltages.

All memory is allocated and all kernels are compiled when a band is made. Finished voltages lie in one of a few buffers;
whoever takes them says when the buffer may be used again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.errors import UsageError
from .activity import Activity
from .backend import Backend, DeviceArray, Event, together
from .choice import Kernels
from .delays import Delays
from .f_plan import Batch, FPlan, FShape, Run
from .gains import Gains
from .sample_buffers import Loaded
from .staging import Staging
from .stream import SampleInfo

KERNELS = "kernels"  # kind of a span of work
MOST_RUNS = 256  # offsets of so many runs go to the device together


@dataclass(frozen=True)
class BandSettings:
    """Says what a band makes of samples.

    ``weights``: float32 [taps, L], the prototype filter; L is 2 n_channels, or n_channels of complex samples.
    """

    n_channels: int
    weights: np.ndarray = field(repr=False)
    bits: int = 8  # bits of the real part of a voltage, and of its imaginary part: 8 or 4
    spectra_per_heap: int = 256
    heaps_per_batch: int = 1
    max_delay_diff: int = 1 << 16  # samples by which delays may differ, between polarisations and in time
    n_buffers: int = 3  # buffers of voltages: one is filled while others are copied out

    @property
    def window(self) -> int:
        """Returns the samples of the engine's input that a spectrum is made of."""
        return int(self.weights.size)

    def shape(self, info: SampleInfo) -> FShape:
        """Returns the lengths of the plan. Raises UsageError where the weights do not fit."""
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
        )

    def parts(self, n_pols: int) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Returns the shape and the type of each array in the memory of ``Voltages``."""
        pair = () if self.bits == 4 else (2,)
        return {
            "voltages": ((self.heaps_per_batch, 1, self.n_channels, self.spectra_per_heap, n_pols, *pair), np.int8),
            "saturated": ((self.heaps_per_batch, 1, n_pols), np.uint32),
            "total_power": ((n_pols,), np.uint64),
        }


@dataclass
class Voltages:
    """A buffer of voltages on the device, with what was made into it. Arrays of the device are ready at ``done``."""

    memory: DeviceArray  # uint8, contiguous: what the next three are views of, in this order
    voltages: DeviceArray  # int8 [n_heaps, 1, C, spectra_per_heap, n_pols, 2], without the last axis at 4 bits
    saturated: DeviceArray  # uint32 [n_heaps, 1, n_pols]
    total_power: DeviceArray  # uint64 [n_pols], squares of the samples of all present spectra
    turns: DeviceArray  # float32 [2, n_spectra, n_pols], delays and phases
    read_at: float = 0.0  # time.monotonic() when the last samples for it had been read
    time: int = 0  # time of the first spectrum
    heaps: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # bool [n_heaps]: those that are whole
    n_present: int = 0  # spectra
    done: Event | None = None
    free: tuple[Event, ...] = ()  # the events after which the buffer may be used again

    @property
    def counts(self) -> DeviceArray:
        """Returns the part of ``memory`` that is added to: saturated and total_power."""
        return self.memory[self.voltages.nbytes :]


class Band:
    """Makes voltages of one antenna's samples, and hands them to ``deliver`` in the order of time.

    Args:
        deliver: takes a buffer of voltages and returns the events after which it may be used again.
        unit: samples of the engine's input for each of this band's, which are fewer after a decimation.
    """

    def __init__(
        self,
        backend: Backend,
        kernels: Kernels,
        info: SampleInfo,
        settings: BandSettings,
        delays: Sequence[Delays],
        gains: Gains,
        deliver: Callable[[Voltages], tuple[Event, ...]],
        activity: Activity,
        unit: int = 1,
    ) -> None:
        if len(delays) != info.n_pols:
            raise UsageError(f"{len(delays)} delay models were given; there are {info.n_pols} polarisations")
        self.settings, self.gains, self.unit, self._deliver = settings, gains, unit, deliver
        self.shape = settings.shape(info)
        self.plan = FPlan(self.shape, delays)
        self._info, self._stream, self._activity = info, backend.stream(), activity
        taps, length = settings.weights.shape
        n, n_pols, n_channels = self.shape.spectra_per_batch, info.n_pols, settings.n_channels
        filtered = np.complex64 if info.is_complex else np.float32
        nyquist = 0 if info.is_complex else 1
        self._weights = self._on_device(backend, np.ascontiguousarray(settings.weights, np.float32))
        self._filtered = backend.empty((n_pols, n, length), filtered)
        self._spectra = backend.empty((1, n_pols, n, n_channels + nyquist), np.complex64)
        self._gains = backend.empty((1, n_channels, n_pols), np.complex64)
        self._gains_set: int | None = None  # number of the piece that the device has
        self._offsets = backend.empty((MOST_RUNS, n_pols), np.int64)
        self._offsets_sent = Staging(backend, (MOST_RUNS, n_pols), np.int64)
        self._gains_sent = Staging(backend, (1, n_channels, n_pols), np.complex64)
        self._turns_sent = Staging(backend, (2, n, n_pols), np.float32)
        self._filter, self._filter_problem = kernels.launcher(
            "pfb_fir", taps=taps, n_channels=n_channels, sample_bits=info.sample_bits, n_pols=n_pols, n_spectra=n
        )
        self._quantise, self._quantise_problem = kernels.launcher(
            "postproc",
            n_channels=n_channels,
            nyquist=nyquist,
            n_pols=n_pols,
            bits=settings.bits,
            layout="batches",
            spectra_per_heap=settings.spectra_per_heap,
            n_receivers=1,
            n_heaps=settings.heaps_per_batch,
        )
        self._transform = backend.fourier(length, n_pols * n, info.is_complex)
        self._buffers = [self._voltages(backend) for _ in range(settings.n_buffers)]
        self._number = 0
        self._read_at = 0.0

    @property
    def head(self) -> int:
        """Returns the samples of the input that are needed in front of a chunk."""
        return self.shape.head

    @property
    def reach(self) -> int:
        """Returns the missing samples after which nothing from before them is asked for."""
        return self.shape.head

    @property
    def heap_samples(self) -> int:
        """Returns the samples of the engine's input from one heap to the next."""
        return self.settings.spectra_per_heap * self.shape.step * self.unit

    def take(self, loaded: Loaded) -> Event:
        """Make what can be made of a chunk; returns the event from which on its buffer is not needed."""
        for event in loaded.ready:
            self._stream.after(event)
        self._read_at = loaded.read_at
        self._do(list(self.plan.chunk(loaded.samples.time, loaded.samples.received)), loaded)
        return self._stream.record()

    def finish(self) -> None:
        """Make the last batch as far as its spectra came."""
        self._do(list(self.plan.finish()), None)

    # ------------------------------------------------------------------ steps
    def _do(self, items: list[Run | Batch], loaded: Loaded | None) -> None:
        runs = [item for item in items if isinstance(item, Run)]
        number = 0
        for some in up_to_batches(items):
            with self._activity.span(KERNELS, self._stream):
                for item in some:
                    if isinstance(item, Batch):
                        self._back_end(item)
                        continue
                    assert loaded is not None
                    if number % MOST_RUNS == 0:
                        self._send_offsets(runs[number : number + MOST_RUNS], loaded)
                    self._front_end(item, number % MOST_RUNS, loaded)
                    number += 1
            if isinstance(some[-1], Batch):
                self._hand_on()

    def _send_offsets(self, runs: list[Run], loaded: Loaded) -> None:
        before = 0 if self._info.is_complex else loaded.first * 8 // self._info.sample_bits
        first = np.array([run.first for run in runs]) - (loaded.low - before)
        self._offsets_sent.send(first, self._offsets, self._stream)

    def _front_end(self, run: Run, number: int, loaded: Loaded) -> None:
        """Filters the spectra of a run into their place in the batch."""
        length = loaded.rows.shape[1]
        n_samples = length if self._info.is_complex else length * 8 // self._info.sample_bits
        arrays = {
            "filtered": self._filtered[:, run.place : run.place + run.n],
            "samples": loaded.rows,
            "weights": self._weights,
            "offsets": self._offsets[number],
        }
        if not self._info.is_complex:
            arrays["total_power"] = self._buffers[self._number].total_power
        self._filter(replace(self._filter_problem, n_spectra=run.n, n_samples=n_samples), arrays, {}, self._stream)

    def _back_end(self, batch: Batch) -> None:
        """Transforms and quantises a batch."""
        buffer, stream = self._buffers[self._number], self._stream
        buffer.read_at, buffer.time = self._read_at, batch.time * self.unit
        buffer.heaps = batch.heaps(self.settings.spectra_per_heap)
        buffer.n_present = int(np.count_nonzero(batch.present))
        if buffer.heaps.any():
            fine = 2 * batch.fine if self._info.is_complex else batch.fine
            self._turns_sent.send((fine, batch.phase), buffer.turns, stream)
            self._transform(self._spectra[0], self._filtered, stream)
            for first, n in self.gains.ranges(buffer.time, len(buffer.heaps), self.heap_samples):
                self._set_gains(buffer.time + first * self.heap_samples)
                self._post_process(buffer, first, n)

    def _hand_on(self) -> None:
        """Hands a buffer on, and takes the next one."""
        buffer = self._buffers[self._number]
        buffer.done = self._stream.record()
        buffer.free = self._deliver(buffer)
        self._number = (self._number + 1) % len(self._buffers)
        self._begin(self._buffers[self._number])

    def _post_process(self, buffer: Voltages, first: int, n: int) -> None:
        spectra_per_heap = self.settings.spectra_per_heap
        heaps, some = slice(first, first + n), slice(first * spectra_per_heap, (first + n) * spectra_per_heap)
        problem = replace(self._quantise_problem, n_heaps=n)
        arrays = {
            "voltages": buffer.voltages[heaps],
            "saturated": buffer.saturated[heaps],
            "spectra": self._spectra[:, :, some],
            "delays": buffer.turns[:1, some],
            "phases": buffer.turns[1:, some],
            "gains": self._gains,
        }
        self._quantise(problem, arrays, {}, self._stream)

    def _set_gains(self, time: int) -> None:
        number, values = self.gains.at(time)
        if number != self._gains_set:
            self._gains_sent.send(values[np.newaxis], self._gains, self._stream)
            self._gains_set = number

    # ------------------------------------------------------------------ memory
    def _begin(self, buffer: Voltages) -> None:
        """Waits on the device until a buffer is free, and clears what is added to."""
        for event in buffer.free:
            self._stream.after(event)
        self._stream.zero(buffer.counts)

    def _voltages(self, backend: Backend) -> Voltages:
        memory, parts = together(backend.empty, self.settings.parts(self._info.n_pols))
        turns = backend.empty((2, self.shape.spectra_per_batch, self._info.n_pols), np.float32)
        buffer = Voltages(memory, **parts, turns=turns)
        self._begin(buffer)
        return buffer

    def _on_device(self, backend: Backend, values: np.ndarray) -> DeviceArray:
        pinned, made = backend.pinned(values.shape, values.dtype), backend.empty(values.shape, values.dtype)
        pinned[...] = values
        self._stream.copy_in(made, pinned)
        self._stream.record().wait()
        return made


def up_to_batches(items: list[Run | Batch]) -> list[list[Run | Batch]]:
    """Returns the items in groups that end with a batch each, but for the last."""
    ends = [i + 1 for i, item in enumerate(items) if isinstance(item, Batch)]
    bounds = [0, *ends, len(items)]
    return [items[begin:end] for begin, end in pairwise(bounds) if begin < end]


def complex_weights(weights: np.ndarray) -> np.ndarray:
    """Returns the weights for complex samples: signs that alternate put frequency 0 into channel C / 2."""
    if weights.dtype != np.float32:
        raise UsageError(f"weights are {weights.dtype}; they must be float32")
    return weights * np.where(np.arange(weights.shape[1]) % 2, -1, 1).astype(np.float32)
