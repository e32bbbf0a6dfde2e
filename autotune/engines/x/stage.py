"""The X-engine on a device: chunks of batches of voltages in, dumps of visibilities out.

The constructor allocates all memory and compiles all kernels. Ranges of batches are correlated into 64-bit sums,
which a dump reduces to 32 bits and clears.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..machine.activity import KERNELS
from ..machine.backend import Backend, DeviceArray, Event
from ..machine.staging import Staging
from ..run.bay import Bay
from ..run.counters import XCounters
from .launchers import x_launchers
from .plan import NO_HOLES, BatchRange, Integration, XPlan
from .x_settings import PRODUCTS, XSettings


@dataclass
class Visibilities:
    """A buffer of visibilities on the device, and its dump. The arrays are ready at ``done``."""

    visibilities: DeviceArray  # int32 [C, n_baselines, 4, 2]
    saturated: DeviceArray  # uint64 [1]
    present: DeviceArray  # uint8 [n_baselines]
    time: int = 0
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint32))  # uint32 [n_baselines, 4]
    done: Event | None = None
    free: Event | None = None  # the event after which the buffer may be used again


class XStage:
    """Makes dumps from voltages on the device, and passes them to ``deliver`` in the order of time.

    Args:
        deliver: takes a buffer of visibilities and returns the event after which it may be used again.
    """

    def __init__(
        self,
        bay: Bay,
        settings: XSettings,
        deliver: Callable[[Visibilities], Event],
        counters: XCounters,
    ) -> None:
        s, backend = settings, bay.backend
        self.settings, self._deliver, self._counters = settings, deliver, counters
        self.stream, self._activity = backend.stream(), bay.activity
        self._present_sent = Staging(backend, ((s.n_baselines,), np.uint8))
        self.plan = XPlan(s.n_antennas, s.batch_samples, s.accumulate, s.spectra_per_heap, complete=s.complete_dumps)
        self._launchers = x_launchers(bay, s)
        sums = (self._launchers.n_slices, s.n_channels, s.n_baselines, PRODUCTS, 2)
        self._accumulators = backend.empty(sums, np.int64)
        self.stream.zero(self._accumulators)
        self._buffers = [self._visibilities(backend) for _ in range(s.n_buffers)]
        self._number = 0

    def take(
        self,
        voltages: DeviceArray,
        time: int,
        present: np.ndarray,
        holes: Mapping[tuple[int, int], np.ndarray] = NO_HOLES,
    ) -> Event:
        """Add a chunk whose first batch has ``time``. Returns the event after which the chunk is not needed.

        Args:
            voltages: int8 ``chunk_shape``. The first len(present) batches are used; missing heaps in them are cleared.
            present: bool [n_batches, n_antennas].
            holes: flags of spectra for heaps that lack some, as in ``Batches``; voltages of missing spectra are 0.
        """
        with self._activity.span(KERNELS, self.stream) as span:
            if not self.settings.complete_dumps:  # complete dumps drop the products of missing heaps anyway
                self._clear(voltages, present)
            for item in self.plan.chunk(time, present, holes):
                self._do(item, voltages)
        with self._counters.lock:
            self._counters.batches_in += len(present)
            self._counters.heaps_missing = self.plan.n_missing
            self._counters.dumps_skipped = self.plan.n_skipped
        return span.end

    # ------------------------------------------------------------------ steps
    def _clear(self, voltages: DeviceArray, present: np.ndarray) -> None:
        """Clears missing heaps, so that their products are 0."""
        for batch, antenna in np.argwhere(~present).tolist():
            self.stream.zero(voltages[batch, antenna])

    def _do(self, item: BatchRange | Integration, voltages: DeviceArray) -> None:
        if isinstance(item, Integration):
            self._dump(item)
            return
        arrays = {"voltages": voltages, "accumulators": self._accumulators}
        problem = replace(self._launchers.batches, first_batch=item.first, n_used=item.n)
        self._launchers.correlate(problem, arrays, {}, self.stream)

    def _dump(self, dump: Integration) -> None:
        buffer, stream = self._buffers[self._number], self.stream
        if buffer.free is not None:
            stream.after(buffer.free)
        buffer.time, buffer.weights = dump.time, dump.weights
        (pinned,) = self._present_sent.arrays()
        pinned[...] = dump.present()
        self._present_sent.send(stream, buffer.present)
        stream.zero(buffer.saturated)
        arrays = {
            "visibilities": buffer.visibilities,
            "accumulators": self._accumulators,
            "saturated": buffer.saturated,
            "present": buffer.present,
        }
        self._launchers.accumulate(self._launchers.dump, arrays, {}, stream)
        buffer.done = stream.record()
        buffer.free = self._deliver(buffer)
        self._number = (self._number + 1) % len(self._buffers)

    def _visibilities(self, backend: Backend) -> Visibilities:
        s = self.settings
        return Visibilities(
            visibilities=backend.empty((s.n_channels, s.n_baselines, PRODUCTS, 2), np.int32),
            saturated=backend.empty((1,), np.uint64),
            present=backend.empty((s.n_baselines,), np.uint8),
        )
