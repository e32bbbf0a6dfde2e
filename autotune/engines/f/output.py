"""The voltages of one band on their way from the device to a sink."""

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...core.errors import UsageError, one_line
from ..machine.activity import COPY_OUT
from ..machine.backend import Event, together
from ..run.bay import Bay
from ..run.counters import FCounters
from ..run.queues import Buckets
from ..streams.voltages import VoltageInfo, VoltageSink
from .plan import ranges
from .voltage_buffers import BandSettings, BatchCounts, Voltages


@dataclass
class PinnedVoltages:
    """A bucket of voltages in pinned memory."""

    memory: np.ndarray  # uint8: the memory of the next three, as in voltage_buffers.Voltages
    voltages: np.ndarray  # int8 [n_heaps, 1, *heap_shape]
    saturated: np.ndarray  # uint32 [n_heaps, 1, n_pols]
    total_power: np.ndarray  # uint64 [n_pols]
    time: int = 0
    heaps: np.ndarray | None = None  # bool [n_heaps]: whether each heap is made
    present: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # bool [n_heaps, spectra_per_heap, n_pols]
    counted: BatchCounts = field(default_factory=BatchCounts)
    read_at: float = 0.0
    copied: Event | None = None

    @cached_property
    def counts(self) -> np.ndarray:
        """Returns the part of ``memory`` after the voltages."""
        return self.memory[self.voltages.nbytes :]


class FOutput:
    """Copies voltages out in the thread that makes them, and writes them in another thread.

    A live source does not wait: voltages made while no bucket is free, or after the sink has failed, are dropped and
    counted.

    Args:
        sink: takes the voltages; with None only their counts are copied.
    """

    def __init__(
        self,
        bay: Bay,
        settings: BandSettings,
        info: VoltageInfo,
        sink: VoltageSink | None,
        counters: FCounters,
        is_live: bool,
    ) -> None:
        self._sink, self._counters, self._activity = sink, counters, bay.activity
        self._info, self._ending, self._is_live = info, bay.ending, is_live and sink is not None
        self._ending.n_sinks += sink is not None
        self._copies = bay.backend.stream()

        def heaps() -> PinnedVoltages:
            memory, parts = together(bay.backend.pinned, settings.parts(info.n_pols))
            return PinnedVoltages(memory, **parts)

        self.buckets = Buckets([heaps() for _ in range(settings.n_buffers)], bay.ending)

    def deliver(self, voltages: Voltages) -> tuple[Event, ...]:
        """Copy a buffer out. Returns the event after which it may be used again. Raises Stopped."""
        assert voltages.done is not None
        bucket = self.buckets.free_now() if self._is_live else self.buckets.free()
        if bucket is None:
            self._drop(voltages.heaps, voltages.counted)
            return ()
        self._copies.after(voltages.done)
        with self._activity.span(COPY_OUT, self._copies) as span:
            if self._sink is not None and voltages.heaps.any():
                self._copies.copy_out(bucket.memory, voltages.memory)
            else:
                self._copies.copy_out(bucket.counts, voltages.counts)
        bucket.time, bucket.heaps, bucket.counted = voltages.time, voltages.heaps, voltages.counted
        bucket.present, bucket.read_at, bucket.copied = voltages.present, voltages.read_at, span.end
        self.buckets.give(bucket)
        return (bucket.copied,)

    def finish(self) -> None:
        """Make ``write`` end when it has written all delivered heaps."""
        self.buckets.give(None)

    def write(self) -> None:
        """Write heaps until ``finish``."""
        while (bucket := self.buckets.take()) is not None:
            assert bucket.copied is not None and bucket.heaps is not None
            bucket.copied.wait()
            if self._counters.sink_error or not self._has_written(bucket, bucket.heaps):
                self._drop(bucket.heaps, bucket.counted)
            else:
                self._count(bucket, bucket.heaps)
            self.buckets.give_back(bucket)

    def _has_written(self, bucket: PinnedVoltages, heaps: np.ndarray) -> bool:
        """Returns whether the sink took the heaps. Raises the sink's error, unless the source is live."""
        if self._sink is None:
            return True
        try:
            for first, end in ranges(heaps):  # views, since copies would make a live source drop more
                times, some = bucket.time + self._info.heap_samples * np.arange(first, end), slice(first, end)
                voltages, saturated = bucket.voltages[some, 0], bucket.saturated[some, 0]
                self._sink.write(times, voltages, saturated, bucket.present[some])
        except UsageError as error:
            if not self._is_live:
                raise
            self._counters.sink_error = one_line(str(error))
            self._ending.sink_failed(error)
            return False
        return True

    def _drop(self, heaps: np.ndarray, counted: BatchCounts) -> None:
        with self._counters.lock:
            self._counters.heaps_dropped += int(np.count_nonzero(heaps))
            self._count_missing(counted)

    def _count_missing(self, counted: BatchCounts) -> None:
        self._counters.heaps_missing += counted.n_missing
        self._counters.spectra_missing += counted.n_spectra_missing
        self._counters.spectra_beyond += counted.n_beyond

    def _count(self, bucket: PinnedVoltages, heaps: np.ndarray) -> None:
        counters = self._counters
        with counters.lock:
            counters.heaps_out += int(np.count_nonzero(heaps))
            self._count_missing(bucket.counted)
            counters.saturated += bucket.saturated[heaps, 0].sum(axis=0, dtype=np.int64)
            counters.power += bucket.total_power
            counters.power_samples += bucket.counted.n_present * self._info.step
            if bucket.read_at:
                counters.latency_s = max(counters.latency_s, time.monotonic() - bucket.read_at)
