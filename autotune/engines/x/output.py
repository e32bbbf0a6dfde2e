"""Dumps of visibilities on their way from the device to a sink."""

from dataclasses import dataclass, field

import numpy as np

from ..machine.activity import COPY_OUT
from ..machine.backend import Event
from ..run.bay import Bay
from ..run.counters import XCounters
from ..run.sink_output import SinkOutput
from ..streams.visibilities import MISSING, VisibilitySink
from .stage import Visibilities
from .x_settings import PRODUCTS, XSettings


@dataclass
class PinnedVisibilities:
    """A bucket of visibilities in pinned memory."""

    visibilities: np.ndarray  # int32 [C, n_baselines, 4, 2]
    saturated: np.ndarray  # uint64 [1]
    time: int = 0
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint32))  # uint32 [n_baselines, 4]
    copied: Event | None = None


class XOutput(SinkOutput[PinnedVisibilities]):
    """The way of dumps to their sink.

    Args:
        send_empty: whether a dump in which no baseline has data is written, filled with the mark of missing data.
        n_waiting: dumps of a live source for which there is room.
    """

    def __init__(
        self,
        bay: Bay,
        settings: XSettings,
        sink: VisibilitySink,
        counters: XCounters,
        send_empty: bool,
        is_live: bool,
        n_waiting: int,
    ) -> None:
        self._sources, self._possible = settings.sources()
        self._baselines = np.arange(settings.n_baselines)[:, np.newaxis]
        self._are_first = bool((self._sources == np.arange(settings.n_products)).all())
        n_possible = int(np.count_nonzero(self._possible))
        self._whole = settings.accumulate * settings.spectra_per_heap * n_possible
        self._n_products, self._is_conjugate = settings.n_products, settings.is_conjugate
        self._send_empty, self._counters = send_empty, counters
        shape = (settings.n_channels, settings.n_baselines, PRODUCTS, 2)
        dumps = [
            PinnedVisibilities(bay.backend.pinned(shape, np.int32), bay.backend.pinned((1,), np.uint64))
            for _ in range(n_waiting if is_live else settings.n_buffers)
        ]
        super().__init__(bay, sink, counters, is_live, dumps)

    def deliver(self, visibilities: Visibilities) -> Event:
        """Copy a buffer out. Returns the event after which it may be used again. Raises Stopped."""
        assert visibilities.done is not None
        bucket = self._free()
        if bucket is None:
            self._drop(visibilities)
            return visibilities.done
        self._copies.after(visibilities.done)
        with self._activity.span(COPY_OUT, self._copies) as span:
            self._copies.copy_out(bucket.visibilities, visibilities.visibilities)
            self._copies.copy_out(bucket.saturated, visibilities.saturated)
        weights = visibilities.weights[self._baselines, self._sources] * self._possible
        bucket.time, bucket.weights, bucket.copied = visibilities.time, weights, span.end
        self.buckets.give(bucket)
        return bucket.copied

    def _pass_on(self, bucket: PinnedVisibilities) -> None:
        if not (self._send_empty or bucket.weights.any()):
            return
        if self._is_conjugate:
            conjugate(bucket.visibilities)
        assert self._sink is not None
        if self._are_first:
            visibilities = bucket.visibilities[:, :, : self._n_products]
        else:
            visibilities = bucket.visibilities[:, self._baselines, self._sources]
        self._sink.write(bucket.time, visibilities, bucket.weights, int(bucket.saturated[0]))

    def _count(self, bucket: PinnedVisibilities) -> None:
        weight = int(bucket.weights.sum(dtype=np.int64))
        is_empty = not weight
        with self._counters.lock:
            self._counters.dumps_out += not is_empty
            self._counters.dumps_empty += is_empty
            self._counters.weight += weight
            self._counters.weight_whole += self._whole
            self._counters.saturated += int(bucket.saturated[0])

    def _drop(self, made: Visibilities | PinnedVisibilities) -> None:
        with self._counters.lock:
            self._counters.dumps_dropped += 1


def conjugate(visibilities: np.ndarray) -> None:
    """Conjugates int32 [.., 2] in place, except the mark of missing data, (-2^31, 1).

    Sums are clipped to +-(2^31 - 1): each has its negative, and only the mark has -2^31. ``correlate`` expects the real
    part in the low nibble. If it is in the high nibble, ``correlate`` reads a voltage z as i z*, and its product with
    another is exactly the conjugate of the right one.
    """
    imaginary = visibilities[..., 1]
    np.negative(imaginary, out=imaginary, where=visibilities[..., 0] != MISSING)
