"""A narrow band of an F-engine: ddc in front of a filter bank of complex samples.

Outputs of ddc are made in batches that start at absolute multiples of their length, so they and the mixer's phases
depend only on time, not on the lengths of chunks. For the filter bank a batch of outputs is like a packet of a wide
band: it is present if all packets under its low-pass filter came.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..corrections.delays import DecimatedDelays, DelayModel
from ..corrections.gains import Gains
from ..machine.activity import KERNELS
from ..machine.backend import Event
from ..machine.host_backend import HostBackend
from ..run.bay import Bay
from ..streams.samples import COMPLEX_BITS, SampleInfo, Samples
from .band import Band
from .numpy_down_converter import NumpyDownConverter
from .sample_buffers import ALIGN, LoadedChunk
from .voltage_buffers import BandSettings, Voltages


@dataclass(frozen=True)
class NarrowSettings:
    """The settings of a narrow band, which is made from real samples.

    ``band.weights``: float32 [taps, n_channels].
    ``low_pass``: float32 [n], the weights of the filter in front of the decimation.
    """

    band: BandSettings
    low_pass: np.ndarray = field(repr=False)
    centre: float  # frequency of channel n_channels / 2, in cycles per sample
    decimation: int
    outputs_per_batch: int = 1 << 13  # outputs of ddc in a batch, which is made or missing as a whole

    @property
    def window(self) -> int:
        """Returns the number of the engine's input samples in a spectrum."""
        return (self.band.window - 1) * self.decimation + int(self.low_pass.size)

    @property
    def middle(self) -> float:
        """Returns the number of input samples from a spectrum's timestamp to the middle of both filters."""
        return self.band.middle * self.decimation + self.low_pass.size / 2


class NarrowBand:
    """Makes the voltages of a narrow band. The other arguments are those of ``band.Band``.

    Args:
        chunk: the most samples of each polarisation in a chunk.
    """

    def __init__(
        self,
        bay: Bay,
        info: SampleInfo,
        settings: NarrowSettings,
        *,
        delays: Sequence[DelayModel],
        gains: Gains,
        deliver: Callable[[Voltages], tuple[Event, ...]],
        chunk: int,
    ) -> None:
        decimation, n_outputs = settings.decimation, settings.outputs_per_batch
        if info.is_complex:
            raise UsageError("a narrow band is cut out of real samples; these are complex")
        if n_outputs * decimation * info.sample_bits % (8 * ALIGN):
            raise UsageError(
                f"outputs_per_batch={n_outputs} times decimation={decimation} samples of {info.sample_bits} bits are "
                f"not whole pieces of {ALIGN} bytes; choose a multiple of 64"
            )
        self._info, self._settings, self._activity, backend = info, settings, bay.activity, bay.backend
        self._stream = backend.stream()
        low_pass = np.ascontiguousarray(settings.low_pass, np.float32)
        self._window = (n_outputs - 1) * decimation + low_pass.size  # samples under a batch of outputs
        self._mix = (-settings.centre).as_integer_ratio()  # cycles a sample
        pinned = backend.pinned(low_pass.shape, np.float32)
        pinned[...] = low_pass
        self._weights = backend.empty(low_pass.shape, np.float32)
        self._stream.copy_in(self._weights, pinned)
        self._stream.record().wait()
        self._down_convert, self._problem = down_converter(bay, info, settings, self._window)
        baseband = SampleInfo(COMPLEX_BITS, info.n_pols, info.sample_rate_hz / decimation, packet=n_outputs)
        narrow = replace(settings.band, max_delay_diff=-(-settings.band.max_delay_diff // decimation))
        decimated = [DecimatedDelays(model, decimation) for model in delays]
        self.band = Band(bay, baseband, narrow, delays=decimated, gains=gains, deliver=deliver, decimation=decimation)
        self._head = self.band.shape.head
        most = -(-chunk // (n_outputs * decimation)) + 1  # batches of outputs of a chunk
        shape = info.n_pols, self._head + most * n_outputs
        self._buffers = [backend.empty(shape, np.complex64) for _ in range(2)]
        places = [slice(self._head + i * n_outputs, self._head + (i + 1) * n_outputs) for i in range(most)]
        # Each batch of outputs of each polarisation, in each buffer: there are many, and a view takes a while to make.
        self._basebands = [
            [[buffer[pol : pol + 1, place] for pol in range(info.n_pols)] for place in places]
            for buffer in self._buffers
        ]
        self._used: list[Event | None] = [None, None]
        self._number = 0
        self._next: int | None = None  # number of the next batch of outputs
        self._before: tuple[int, int] | None = None  # the buffer before, and where it ends
        self._came = np.zeros((info.n_pols, 0), bool)  # packets of the input from _low on
        self._low = 0

    @property
    def head(self) -> int:
        """Returns the samples of the engine's input that are needed in front of a chunk."""
        packet, batch = self._info.packet, self._settings.outputs_per_batch * self._settings.decimation
        return -(-(self._window + batch) // packet) * packet

    @property
    def whole_heaps(self) -> bool:
        """Returns whether heaps that lack anything are left out."""
        return self.band.whole_heaps

    @property
    def reach(self) -> int:
        """Returns the missing samples after which nothing from before them is asked for."""
        return self.head + self._settings.decimation * (self._head + self._settings.outputs_per_batch)

    def first_heap(self, time: int) -> int:
        """Returns the time of the first heap from samples that begin at ``time``, both in input samples."""
        return self.band.first_heap(self._first_batch(time) * self._settings.outputs_per_batch)

    def take(self, loaded: LoadedChunk) -> Event:
        """Make what can be made of a chunk; returns the event from which on its buffer is not needed."""
        self._keep_flags(loaded.samples)
        for event in loaded.ready:
            self._stream.after(event)
        first, n = self._ready(loaded.samples)
        if not n:
            return self._stream.record()
        place = self._number % 2
        if (used := self._used[place]) is not None:
            self._stream.after(used)
        with self._activity.span(KERNELS, self._stream) as span:
            samples = self._down_convert_all(loaded, first, n)
        low, rows = samples.time - self._head, self._buffers[place]
        narrow = LoadedChunk(rows, COMPLEX_BITS, 0, low, samples, (span.end,), loaded.read_at)
        self._used[place] = self.band.take(narrow)
        self._number += 1
        return span.end

    def finish(self) -> None:
        """Make the last batch as far as its spectra came."""
        self.band.finish()

    # ------------------------------------------------------------------ which outputs can be made
    def _keep_flags(self, samples: Samples) -> None:
        packet = self._info.packet
        end = self._low + self._came.shape[1] * packet
        if self._next is None:
            if samples.time * self._info.sample_bits % 8:
                raise UsageError(
                    f"the stream starts at sample {samples.time} of {self._info.sample_bits} bits, which is not a "
                    "whole byte: a narrow band cannot be made of it"
                )
            self._next = self._first_batch(samples.time)
            self._low = end = samples.time
        n_kept = self.head // packet  # packets in front of the chunk that may be needed
        n_gap = min(n_kept, (samples.time - end) // packet)
        before = np.concatenate([self._came, np.zeros((self._info.n_pols, n_gap), bool)], axis=1)
        before = before[:, max(0, before.shape[1] - n_kept) :]
        self._low = samples.time - before.shape[1] * packet
        self._came = np.concatenate([before, samples.received], axis=1)

    def _first_batch(self, time: int) -> int:
        """Returns the number of the first batch of outputs that samples from ``time`` on can make."""
        return -(-time // (self._settings.outputs_per_batch * self._settings.decimation))

    def _ready(self, samples: Samples) -> tuple[int, int]:
        """Returns the first batch of outputs that the chunk completes, and their number."""
        assert self._next is not None
        batch = self._settings.outputs_per_batch * self._settings.decimation
        end = samples.time + samples.received.shape[1] * self._info.packet
        n = max(0, (end - self._window - self._next * batch) // batch + 1)
        first = self._next
        oldest = -(-(samples.time - self.head) // batch)  # after a gap, the samples of older batches are gone
        self._next += n
        return max(first, oldest), max(0, self._next - max(first, oldest))

    # ------------------------------------------------------------------ making them
    def _down_convert_all(self, loaded: LoadedChunk, first: int, n: int) -> Samples:
        """Makes ``n`` batches of outputs, after the last outputs of the chunk before. Returns which are present."""
        s, bits, place = self._settings, self._info.sample_bits, self._number % 2
        batch = s.outputs_per_batch * s.decimation
        if self._before is not None and self._before[1] == first:
            end = self._before[0]
            self._stream.copy(
                self._buffers[place][:, : self._head], self._buffers[1 - place][:, end - self._head : end]
            )
        present = self._whole(first * batch, n, batch)
        row_bytes = -(-self._window * bits // 8)
        for i in np.flatnonzero(present.any(axis=0)).tolist():
            start = (first + i) * batch
            at = loaded.first + (start - loaded.low) * bits // 8
            if at < 0:
                continue
            inputs = {"mix_frequency": -s.centre, "mix_phase": self._phase_at(start)}
            for pol, baseband in enumerate(self._basebands[place][i]):
                samples = loaded.rows[pol : pol + 1, at : at + row_bytes]
                arrays = {"baseband": baseband, "samples": samples, "weights": self._weights}
                self._down_convert(self._problem, arrays, inputs, self._stream)
        self._before = self._head + n * s.outputs_per_batch, first + n
        return Samples(first * s.outputs_per_batch, present)

    def _whole(self, start: int, n: int, batch: int) -> np.ndarray:
        """Returns whether all packets under each of ``n`` batches of outputs came. The first one begins at ``start``.

        ``batch``: samples from one to the next. Returns bool [n_pols, n].
        """
        packet, from_low = self._info.packet, start - self._low + batch * np.arange(n)
        begin, end = from_low // packet, -(-(from_low + self._window) // packet)
        n_came = np.pad(np.cumsum(self._came, axis=1), ((0, 0), (1, 0)))
        return np.asarray((begin >= 0) & (n_came[:, end] - n_came[:, np.maximum(begin, 0)] == end - begin))

    def _phase_at(self, sample: int) -> float:
        """Returns the mixer's phase at a sample, in cycles, with a single rounding."""
        turns, of = self._mix
        return turns * sample % of / of % 1.0


def down_converter(
    bay: Bay, info: SampleInfo, settings: NarrowSettings, window: int
) -> tuple[Callable[..., None], Any]:
    """Returns a launcher of ``ddc``, or NumPy's on host, for one polarisation of ``window`` samples, and a problem."""
    taps, decimation, bits = settings.low_pass.size, settings.decimation, info.sample_bits
    if isinstance(bay.backend, HostBackend) and bay.kernels.uses_numpy:
        line = f"narrow band of {taps} taps, one of {decimation} samples kept: NumPy; as always on host"
        bay.kernels.decided(("narrow", taps, decimation, bits), lambda: (None, line))
        return NumpyDownConverter(bay.backend, settings.low_pass, decimation, bits, settings.centre), None
    return bay.kernels.launcher("ddc", taps=taps, decimation=decimation, sample_bits=bits, n_pols=1, n_samples=window)
