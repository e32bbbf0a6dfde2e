"""One band of an F-engine on a device: runs of spectra go through a filter bank, and batches of voltages come out.

The constructor allocates all memory and compiles all kernels. Finished voltages lie in one of a few buffers;
the taker returns the events after which the buffer may be used again.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ...core.errors import UsageError
from ..corrections.delays import Delays
from ..corrections.gains import Gains
from ..machine.activity import KERNELS
from ..machine.backend import Backend, Event, together
from ..run.bay import Bay
from ..streams.samples import SampleInfo
from .filter_bank import filter_bank
from .plan import Batch, FPlan, Run
from .sample_buffers import LoadedChunk
from .voltage_buffers import BandSettings, BankParts, BatchCounts, Voltages


class Band:
    """Makes voltages from one antenna's samples, and passes them to ``deliver`` in the order of time.

    Args:
        deliver: takes a buffer of voltages and returns the events after which it may be used again.
        decimation: the decimation in front of this band: input samples of the engine for each band sample.
    """

    def __init__(
        self,
        bay: Bay,
        info: SampleInfo,
        settings: BandSettings,
        *,
        delays: Sequence[Delays],
        gains: Gains,
        deliver: Callable[[Voltages], tuple[Event, ...]],
        decimation: int = 1,
    ) -> None:
        if len(delays) != info.n_pols:
            raise UsageError(f"{len(delays)} delay models were given; there are {info.n_pols} polarisations")
        self.settings, self.decimation, self._deliver = settings, decimation, deliver
        self.shape = settings.shape(info)
        self.plan = FPlan(self.shape, delays)
        self._info, self._stream, self._activity = info, bay.backend.stream(), bay.activity
        self._bank = filter_bank(BankParts(bay, info, settings, gains, self._stream, decimation))
        self._buffers = [self._voltages(bay.backend) for _ in range(settings.n_buffers)]
        self._number = 0
        self._read_at = 0.0

    @property
    def head(self) -> int:
        """Returns the number of input samples that are needed in front of a chunk."""
        return self.shape.head

    @property
    def whole_heaps(self) -> bool:
        """Returns whether incomplete heaps are left out."""
        return self.shape.whole_heaps

    @property
    def reach(self) -> int:
        """Returns the length of a gap, in samples, after which no sample from before it is needed."""
        return self.shape.head

    def first_heap(self, time: int) -> int:
        """Returns the time of the first heap from samples that begin at ``time``, both in input samples."""
        return self.plan.first_heap(time) * self.decimation

    def take(self, loaded: LoadedChunk) -> Event:
        """Make all spectra that a chunk completes. Returns the event after which its buffer is not needed."""
        for event in loaded.ready:
            self._stream.after(event)
        self._read_at = loaded.read_at
        done = self._do(list(self.plan.chunk(loaded.samples.time, loaded.samples.received)), loaded)
        return done or self._stream.record()

    def finish(self) -> None:
        """Make the last batch, as far as its spectra came."""
        self._do(list(self.plan.finish()), None)

    # ------------------------------------------------------------------ steps
    def _do(self, items: list[Run | Batch], loaded: LoadedChunk | None) -> Event | None:
        """Makes the planned items. Returns the event at their end; None if there are none."""
        done = None
        for some in up_to_batches(items):
            buffer, last = self._buffers[self._number], some[-1]
            with self._activity.span(KERNELS, self._stream) as span:
                batch = last if isinstance(last, Batch) else None
                if batch is not None:
                    self._describe(buffer, batch)
                runs = [item for item in some if isinstance(item, Run)]
                self._bank.make(runs, batch, loaded, buffer)
            done = span.end
            if batch is not None:
                self._hand_on(done)
        return done

    def _describe(self, buffer: Voltages, batch: Batch) -> None:
        buffer.read_at, buffer.time = self._read_at, batch.time * self.decimation
        buffer.heaps = batch.heaps(self.shape)
        buffer.present = batch.present.reshape(len(buffer.heaps), self.shape.spectra_per_heap, -1)
        of_some = batch.present[:, 0] | batch.present[:, -1]  # one or two polarisations; any() takes ten times as long
        n_present, n_beyond = int(np.count_nonzero(of_some)), int(np.count_nonzero(batch.beyond))
        n_missing = batch.n_missing(self.shape), batch.n_spectra_missing(self.shape)
        buffer.counted = BatchCounts(*n_missing, n_present, n_beyond)

    def _hand_on(self, done: Event) -> None:
        """Delivers a buffer, which is ready at ``done``, and begins the next one."""
        buffer = self._buffers[self._number]
        buffer.done = done
        buffer.free = self._deliver(buffer)
        self._number = (self._number + 1) % len(self._buffers)
        self._begin(self._buffers[self._number])

    # ------------------------------------------------------------------ memory
    def _begin(self, buffer: Voltages) -> None:
        """Makes the device wait until a buffer is free, and clears its counts."""
        for event in buffer.free:
            self._stream.after(event)
        self._stream.zero(buffer.counts)

    def _voltages(self, backend: Backend) -> Voltages:
        memory, parts = together(backend.empty, self.settings.parts(self._info.n_pols))
        buffer = Voltages(memory, **parts)
        self._begin(buffer)
        return buffer


def up_to_batches(items: list[Run | Batch]) -> list[list[Run | Batch]]:
    """Returns the items in groups. Each group ends with a batch; the last one need not."""
    ends = [i + 1 for i, item in enumerate(items) if isinstance(item, Batch)]
    bounds = [0, *ends, len(items)]
    return [items[begin:end] for begin, end in pairwise(bounds) if begin < end]
