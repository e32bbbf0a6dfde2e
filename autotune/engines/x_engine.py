"""An X-engine: voltages of all antennas in, visibilities out.

One thread reads chunks of batches into pinned memory. The caller's thread copies them to the device and starts the
kernels, and waits for neither. One thread writes dumps.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..core.errors import UsageError
from .backend import Backend, DeviceArray, Event
from .choice import Kernels
from .counters import XCounters
from .flow import Buckets, Chunk, Ending, read_chunks, run_beside
from .stream import Batches, VisibilityInfo, VisibilitySink, VoltageSource
from .x_stage import PRODUCTS, Visibilities, XSettings, XStage

N_CHUNKS = 4  # chunks in pinned memory
N_LOADED = 3  # chunks on the device
REPORT_S = 0.5  # between two lines of progress


@dataclass
class DumpBucket:
    """A dump in pinned memory."""

    visibilities: np.ndarray  # int32 [C, n_baselines, 4, 2]
    saturated: np.ndarray  # uint64 [1]
    time: int = 0
    good: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    copied: Event | None = None


class XEngine:
    """Runs once: ``XEngine(backend, source, sink, threshold, ...).run()``.

    Args:
        threshold: batches of a dump.
        batches_per_chunk: batches that go to the device together.
        send_empty: whether a dump without a good antenna is written, with nothing but the mark of missing data.
        report: takes a line of progress now and then.
    """

    def __init__(
        self,
        backend: Backend,
        source: VoltageSource,
        sink: VisibilitySink,
        threshold: int,
        kernels: Kernels,
        batches_per_chunk: int = 8,
        send_empty: bool = True,
        n_slices: int = 1,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        first = source.antennas[0]
        if first.n_pols != 2:
            raise UsageError(f"an X-engine correlates two polarisations of each antenna; there is {first.n_pols}")
        self._backend, self._source, self._sink, self._report = backend, source, sink, report
        self._send_empty, self._ending = send_empty, Ending()
        self.settings = settings = XSettings(
            n_antennas=len(source.antennas),
            n_channels=first.n_channels,
            spectra_per_heap=first.spectra_per_heap,
            batch_samples=first.heap_samples,
            threshold=threshold,
            batches_per_chunk=batches_per_chunk,
            bits=first.bits,
            n_slices=n_slices,
        )
        self.counters = XCounters()
        shape = (settings.n_channels, settings.n_baselines, PRODUCTS, 2)
        dumps = [
            DumpBucket(backend.pinned(shape, np.int32), backend.pinned((1,), np.uint64))
            for _ in range(settings.n_buffers)
        ]
        self._written = Buckets(dumps, self._ending)
        self._copies_in, self._copies_out = backend.stream(), backend.stream()
        self._stage = XStage(backend, kernels, settings, self._deliver)
        self._loaded: list[tuple[DeviceArray, Event | None]] = [
            (backend.empty(settings.chunk_shape, np.int8), None) for _ in range(N_LOADED)
        ]
        self._number = 0
        chunks = [Chunk[Batches](backend.pinned(settings.chunk_shape, np.int8)) for _ in range(N_CHUNKS)]
        self._chunks = Buckets(chunks, self._ending)
        self._spare = np.empty(settings.chunk_shape, np.int8) if source.is_live else np.empty(0)
        backend.finish()

    def stop(self) -> None:
        """Read no more; what has come is finished. Another thread may call it."""
        self._ending.asked.set()

    def run(self) -> XCounters:
        """Run to the end of the source, or until ``stop`` or Ctrl-C.

        Raises:
            UsageError: of the source or the sink; what was written stands.
        """
        self.counters.began = time.monotonic()
        others = {"autotune-writes": self._write, "autotune-reads": self._read}
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
                self._report(self.counters.line())
        self._stage.finish()
        self._written.give(None)

    def _take(self, chunk: Chunk[Batches]) -> None:
        assert chunk.samples is not None
        batches, place = chunk.samples, self._number % N_LOADED
        self._number += 1
        voltages, used = self._loaded[place]
        if used is not None:
            self._copies_in.after(used)
        n = len(batches.present)
        self._copies_in.copy_in(voltages[:n], chunk.array[:n])
        chunk.copied = self._copies_in.record()
        self._chunks.give_back(chunk)
        self._stage.stream.after(chunk.copied)
        self._loaded[place] = voltages, self._stage.take(voltages, batches.time, batches.present)
        with self.counters.lock:
            self.counters.batches_in += n
            self.counters.heaps_missing += int(batches.present.size - np.count_nonzero(batches.present))

    def _deliver(self, made: Visibilities) -> Event:
        assert made.done is not None
        bucket, copies = self._written.free(), self._copies_out
        copies.after(made.done)
        copies.copy_out(bucket.visibilities, made.visibilities)
        copies.copy_out(bucket.saturated, made.saturated)
        bucket.time, bucket.good, bucket.copied = made.time, made.good, copies.record()
        self._written.give(bucket)
        return bucket.copied

    def _write(self) -> None:
        while (bucket := self._written.take()) is not None:
            assert bucket.copied is not None
            bucket.copied.wait()
            is_empty = not bucket.good.any()
            if self._send_empty or not is_empty:
                self._sink.write(bucket.time, bucket.visibilities, bucket.good, int(bucket.saturated[0]))
            with self.counters.lock:
                self.counters.dumps_out += not is_empty
                self.counters.dumps_empty += is_empty
                self.counters.saturated += int(bucket.saturated[0])
            self._written.give_back(bucket)

    def _dropped(self, batches: Batches) -> None:
        with self.counters.lock:
            self.counters.chunks_dropped += 1


def visibility_info(source: VoltageSource, threshold: int) -> VisibilityInfo:
    """Returns what a sink has to know of the visibilities of ``source``."""
    first = source.antennas[0]
    return VisibilityInfo(
        n_channels=first.n_channels,
        dump_samples=threshold * first.heap_samples,
        antennas=tuple(antenna.samples for antenna in source.antennas),
        centre_frequency_hz=first.centre_frequency_hz,
        channel_width_hz=first.channel_width_hz,
    )
