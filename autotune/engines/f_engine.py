"""An F-engine: samples of one antenna in, voltages of one or several bands out.

One thread reads chunks into pinned memory. The caller's thread copies them to the device and starts the kernels, and
waits for neither. One thread writes what is finished. All bands share the copy in.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import UsageError
from .backend import Backend, Event, Stream
from .band import Band, BandSettings, Voltages
from .choice import Kernels
from .counters import FCounters
from .delays import DelayModel
from .flow import Buckets, Chunk, Ending, read_chunks, run_beside
from .gains import Gains
from .narrow_band import NarrowBand, NarrowSettings
from .sample_buffers import SampleBuffers
from .stream import SampleInfo, Samples, Source, VoltageInfo, VoltageSink

N_CHUNKS = 4  # chunks of samples in pinned memory
N_LOADED = 3  # buffers of samples on the device
REPORT_S = 0.5  # seconds between two lines of progress


@dataclass
class Output:
    """A band and where its voltages go. Delays and gains may be changed while the engine runs."""

    settings: BandSettings | NarrowSettings
    sink: VoltageSink
    delays: Sequence[DelayModel]
    gains: Gains

    @property
    def band(self) -> BandSettings:
        """Returns the settings of the filter bank."""
        return self.settings.band if isinstance(self.settings, NarrowSettings) else self.settings


@dataclass
class Heaps:
    """A bucket of voltages in pinned memory."""

    voltages: np.ndarray  # int8 [n_heaps, *heap_shape]
    saturated: np.ndarray  # uint32 [n_heaps, n_pols]
    total_power: np.ndarray  # uint64 [n_pols]
    time: int = 0
    whole: np.ndarray | None = None  # bool [n_heaps]
    n_present: int = 0
    copied: Event | None = None


class FEngine:
    """Runs once: ``FEngine(backend, source, [Output(...)]).run()``.

    Args:
        chunk_packets: packets of each polarisation that go to the device together.
        report: takes a line of progress now and then.
    """

    def __init__(
        self,
        backend: Backend,
        source: Source,
        outputs: Sequence[Output],
        chunk_packets: int,
        kernels: Kernels,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        if not outputs:
            raise UsageError("an F-engine needs an output")
        info = source.info
        self._backend, self._source, self._outputs, self._report = backend, source, tuple(outputs), report
        self._info, self._chunk_packets = info, chunk_packets
        self._ending = Ending()
        self.counters = [FCounters(info.sample_bits, info.n_pols) for _ in outputs]
        self._written = [
            Buckets([self._heaps(output) for _ in range(output.band.n_buffers)], self._ending) for output in outputs
        ]
        chunk = chunk_packets * info.packet
        self._bands = [self._band(number, output, kernels, chunk) for number, output in enumerate(outputs)]
        head = max(band.head for band in self._bands)
        self._buffers = SampleBuffers(backend, info.sample_bits, info.n_pols, head, chunk, N_LOADED, info.packet)
        shape = (info.n_pols, chunk if info.is_complex else chunk * info.sample_bits // 8)
        dtype = np.complex64 if info.is_complex else np.uint8
        self._chunks = Buckets([Chunk[Samples](backend.pinned(shape, dtype)) for _ in range(N_CHUNKS)], self._ending)
        self._spare = np.empty(shape, dtype) if source.is_live else np.empty(0)
        backend.finish()

    def stop(self) -> None:
        """Read no more; what has come is finished. Another thread may call it."""
        self._ending.asked.set()

    def run(self) -> list[FCounters]:
        """Run to the end of the source, or until ``stop`` or Ctrl-C; returns the counts of each output.

        Raises:
            UsageError: of the source or a sink; what was written stands.
        """
        for counters in self.counters:
            counters.began = time.monotonic()
        others = {f"autotune-writes-{i}": self._writer(i, output) for i, output in enumerate(self._outputs)}
        others["autotune-reads"] = self._read
        run_beside(self._ending, others, self._compute, self._backend.finish)
        return self.counters

    # ------------------------------------------------------------------ the three threads
    def _read(self) -> None:
        read_chunks(self._source, self._chunks, self._spare, self._ending, self._dropped)

    def _compute(self) -> None:
        reported = time.monotonic()
        while (chunk := self._chunks.take()) is not None:
            self._take(chunk)
            if time.monotonic() - reported >= REPORT_S:
                reported = time.monotonic()
                self._report("; ".join(counters.line() for counters in self.counters))
        for band, written in zip(self._bands, self._written, strict=True):
            band.finish()
            written.give(None)

    def _take(self, chunk: Chunk[Samples]) -> None:
        assert chunk.samples is not None
        samples = chunk.samples
        self._pass_gap(samples.time)
        loaded = self._buffers.put(chunk.array, samples)
        chunk.copied = loaded.ready
        self._chunks.give_back(chunk)
        self._buffers.used(*[band.take(loaded) for band in self._bands])
        for counters in self.counters:
            with counters.lock:
                counters.samples_in += samples.received.shape[1] * self._info.packet
                counters.packets_missing += int(samples.received.size - np.count_nonzero(samples.received))

    def _pass_gap(self, end: int) -> None:
        """Gives the bands chunks of missing packets, as far as they may still ask for what was before the gap."""
        begin, packet = self._buffers.end, self._info.packet
        if begin is None:
            return
        reach = max(band.reach for band in self._bands)
        end = min(end, begin + -(-reach // packet) * packet)
        while begin < end:
            n = min(self._chunk_packets, (end - begin) // packet)
            missing = Samples(begin, np.zeros((self._info.n_pols, n), bool))
            loaded = self._buffers.put(None, missing)
            self._buffers.used(*[band.take(loaded) for band in self._bands])
            begin += n * packet

    def _band(self, number: int, output: Output, kernels: Kernels, chunk: int) -> Band | NarrowBand:
        deliver = self._deliverer(number, self._backend.stream())
        given = self._backend, kernels, self._info
        if isinstance(output.settings, NarrowSettings):
            return NarrowBand(*given, output.settings, output.delays, output.gains, deliver, chunk)
        return Band(*given, output.settings, output.delays, output.gains, deliver)

    def _deliverer(self, number: int, copies: Stream) -> Callable[[Voltages], Event]:
        """Returns what copies a band's voltages out and hands them to its writing thread."""
        written = self._written[number]

        def deliver(made: Voltages) -> Event:
            assert made.done is not None
            bucket = written.free()
            copies.after(made.done)
            if made.heaps.any():
                copies.copy_out(bucket.voltages, made.voltages[:, 0])
                copies.copy_out(bucket.saturated, made.saturated[:, 0])
            copies.copy_out(bucket.total_power, made.total_power)
            bucket.time, bucket.whole, bucket.n_present = made.time, made.heaps, made.n_present
            bucket.copied = event = copies.record()
            written.give(bucket)
            return event

        return deliver

    def _writer(self, number: int, output: Output) -> Callable[[], None]:
        band, written, counters = self._bands[number], self._written[number], self.counters[number]
        step = band.heap_samples // output.band.spectra_per_heap

        def write() -> None:
            while (bucket := written.take()) is not None:
                assert bucket.copied is not None and bucket.whole is not None
                bucket.copied.wait()
                whole = np.flatnonzero(bucket.whole)
                if len(whole):
                    every = len(whole) == len(bucket.whole)
                    voltages, saturated = bucket.voltages, bucket.saturated
                    if not every:
                        voltages, saturated = voltages[whole], saturated[whole]
                    output.sink.write(bucket.time + band.heap_samples * whole, voltages, saturated)
                with counters.lock:
                    counters.heaps_out += len(whole)
                    counters.heaps_missing += len(bucket.whole) - len(whole)
                    counters.saturated += bucket.saturated[whole].sum(axis=0, dtype=np.int64)
                    counters.power += bucket.total_power
                    counters.power_samples += bucket.n_present * step
                written.give_back(bucket)

        return write

    def _dropped(self, samples: Samples) -> None:
        for counters in self.counters:
            with counters.lock:
                counters.chunks_dropped += 1

    def _heaps(self, output: Output) -> Heaps:
        info = voltage_info(self._info, output.settings)
        n = output.band.heaps_per_batch
        return Heaps(
            voltages=self._backend.pinned((n, *info.heap_shape), np.int8),
            saturated=self._backend.pinned((n, info.n_pols), np.uint32),
            total_power=self._backend.pinned((info.n_pols,), np.uint64),
        )


def voltage_info(samples: SampleInfo, settings: BandSettings | NarrowSettings) -> VoltageInfo:
    """Returns what a sink has to know of the voltages that a band makes."""
    centre = samples.centre_frequency_hz
    if isinstance(settings, NarrowSettings):
        band, step = settings.band, settings.band.n_channels * settings.decimation
        if centre is not None:  # that of a quarter of the sampling rate
            centre += (settings.centre - 0.25) * samples.sample_rate_hz
    else:
        band, step = settings, settings.shape(samples).step
    return VoltageInfo(
        n_channels=band.n_channels,
        n_pols=samples.n_pols,
        bits=band.bits,
        spectra_per_heap=band.spectra_per_heap,
        step=step,
        samples=samples,
        centre_frequency_hz=centre,
        channel_width_hz=samples.sample_rate_hz / step,
    )
