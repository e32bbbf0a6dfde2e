"""The voltages of one band on their way from the device to a sink."""

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..machine.activity import COPY_OUT
from ..machine.backend import Event, together
from ..run.bay import Bay
from ..run.counters import FCounters
from ..run.sink_output import SinkOutput
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
    heaps: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # bool [n_heaps]: whether each is made
    present: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # bool [n_heaps, spectra_per_heap, n_pols]
    counted: BatchCounts = field(default_factory=BatchCounts)
    read_at: float = 0.0
    copied: Event | None = None

    @cached_property
    def counts(self) -> np.ndarray:
        """Returns the part of ``memory`` after the voltages."""
        return self.memory[self.voltages.nbytes :]


class FOutput(SinkOutput[PinnedVoltages]):
    """The way of a band's heaps to their sink.

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
        self._info, self._counters = info, counters

        def heaps() -> PinnedVoltages:
            memory, parts = together(bay.backend.pinned, settings.parts(info.n_pols))
            return PinnedVoltages(memory, **parts)

        super().__init__(bay, sink, counters, is_live, [heaps() for _ in range(settings.n_buffers)])

    def deliver(self, voltages: Voltages) -> tuple[Event, ...]:
        """Copy a buffer out. Returns the event after which it may be used again. Raises Stopped."""
        assert voltages.done is not None
        bucket = self._free()
        if bucket is None:
            self._drop(voltages)
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

    def _pass_on(self, bucket: PinnedVoltages) -> None:
        if self._sink is None:
            return
        for first, end in ranges(bucket.heaps):  # views, since copies would make a live source drop more
            times, some = bucket.time + self._info.heap_samples * np.arange(first, end), slice(first, end)
            voltages, saturated = bucket.voltages[some, 0], bucket.saturated[some, 0]
            self._sink.write(times, voltages, saturated, bucket.present[some])

    def _drop(self, made: Voltages | PinnedVoltages) -> None:
        with self._counters.lock:
            self._counters.heaps_dropped += int(np.count_nonzero(made.heaps))
            self._count_missing(made.counted)

    def _count_missing(self, counted: BatchCounts) -> None:
        self._counters.heaps_missing += counted.n_missing
        self._counters.spectra_missing += counted.n_spectra_missing
        self._counters.spectra_beyond += counted.n_beyond

    def _count(self, bucket: PinnedVoltages) -> None:
        counters = self._counters
        with counters.lock:
            counters.heaps_out += int(np.count_nonzero(bucket.heaps))
            self._count_missing(bucket.counted)
            counters.saturated += bucket.saturated[bucket.heaps, 0].sum(axis=0, dtype=np.int64)
            counters.power += bucket.total_power
            counters.power_samples += bucket.counted.n_present * self._info.step
            if bucket.read_at:
                counters.latency_s = max(counters.latency_s, time.monotonic() - bucket.read_at)
