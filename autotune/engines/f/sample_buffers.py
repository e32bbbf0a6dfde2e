"""The device's side of an input: a few buffers of samples, which all bands share. Each has a head and a chunk."""

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, lcm

import numpy as np

from ..machine.activity import COPY_IN
from ..machine.backend import DeviceArray, Event
from ..run.bay import Bay
from ..streams.samples import COMPLEX_BITS, SampleInfo, Samples

ALIGN = 16  # bytes: samples whose number is a multiple of the period lie at multiples of it, if possible
N_PARTS = 64  # parts of buffers, filled by chunks, whose views stay cached


@dataclass(frozen=True)
class LoadedChunk:
    """A chunk on the device. Sample ``low`` is the first of ``rows``, which end ``n_samples`` later."""

    rows: DeviceArray  # uint8 [n_pols, n_bytes], or complex64 [n_pols, n_samples]; the first sample is at `first`
    sample_bits: int
    first: int  # index of `low` along rows, in bytes or complex samples
    low: int
    samples: Samples
    ready: tuple[Event, ...]  # the events after which rows are filled
    read_at: float = 0.0  # time.monotonic() when the chunk had been read

    @property
    def zero(self) -> int:
        """Returns the time of a sample at the very beginning of rows, from which offsets count."""
        return self.low - self._samples_in(self.first)

    @property
    def n_samples(self) -> int:
        """Returns the number of samples that fit into a row."""
        return self._samples_in(int(self.rows.shape[1]))

    def _samples_in(self, places: int) -> int:
        return places if self.sample_bits == COMPLEX_BITS else places * 8 // self.sample_bits


class SampleBuffers:
    """Copies chunks to the device. ``used`` takes the events after which a chunk is not needed.

    Args:
        head: samples to keep in front of a chunk.
        chunk: the most samples of each polarisation in a chunk.
    """

    def __init__(self, bay: Bay, info: SampleInfo, head: int, chunk: int, n_buffers: int) -> None:
        backend, self._activity = bay.backend, bay.activity
        self._bits, self._head, self._packet = info.sample_bits, head, info.packet
        self._is_complex = info.is_complex
        self.stream = backend.stream()
        self._heads = backend.stream()  # a copy within the device would delay the one from the host on one stream
        self._period = 8 * ALIGN // gcd(8 * ALIGN, self._bits)  # samples after which rows are at the same place again
        length = self._places(self._period + head + chunk) + 2 * ALIGN
        dtype = np.complex64 if self._is_complex else np.uint8
        whole = lcm(64, self._bits)  # rows are whole samples, too
        shape = info.n_pols, -(-length // whole) * whole
        self._buffers = buffers = [backend.empty(shape, dtype) for _ in range(n_buffers)]
        self._part = lru_cache(maxsize=N_PARTS)(lambda place, begin, end: buffers[place][:, begin:end])
        self._used: list[tuple[Event, ...]] = [()] * n_buffers
        self._number = 0
        self._before: tuple[LoadedChunk, int] | None = None  # the chunk before, and the end of its rows

    @property
    def end(self) -> int | None:
        """Returns the end of the last chunk that was put; None before the first one."""
        if self._before is None:
            return None
        samples = self._before[0].samples
        return samples.time + int(samples.received.shape[1]) * self._packet

    def put(self, chunk: np.ndarray | None, samples: Samples, read_at: float = 0.0) -> LoadedChunk:
        """Copy a chunk after the last samples of the one before. ``used`` must have been called for older chunks.

        ``chunk``: None if no packet of it came.
        """
        place = self._number % len(self._buffers)
        n = samples.received.shape[1] * self._packet
        low = samples.time - self._head
        # Samples whose absolute number is a multiple of the period go to multiples of ALIGN bytes.
        is_aligned = low * self._bits % 8 == 0 and not self._is_complex
        first = self._places(low % self._period) if is_aligned else 0
        begin, n_places = first + self._places(self._head), self._places(n)
        ready = []
        if self.end == samples.time:  # after a gap there is nothing to keep
            ready.append(self._copy_head(self._part(place, first, begin), self._used[place]))
        for event in self._used[place]:
            self.stream.after(event)
        if chunk is None:
            ready.append(self.stream.record())
        else:
            with self._activity.span(COPY_IN, self.stream) as span:
                self.stream.copy_in(self._part(place, begin, begin + n_places), chunk[:, :n_places])
            ready.append(span.end)
        loaded = LoadedChunk(self._buffers[place], self._bits, first, low, samples, tuple(ready), read_at)
        self._before = loaded, begin + n_places
        return loaded

    def used(self, *events: Event) -> None:
        """Set the events after which the last chunk is not needed."""
        self._used[self._number % len(self._buffers)] = events
        self._number += 1

    def _copy_head(self, to: DeviceArray, free: tuple[Event, ...]) -> Event:
        """Copies the end of the chunk before. Returns the event after which its buffer is not needed."""
        assert self._before is not None
        loaded, end = self._before
        for event in (*free, *loaded.ready):
            self._heads.after(event)
        place = (self._number - 1) % len(self._buffers)
        self._heads.copy(to, self._part(place, end - self._places(self._head), end))
        copied = self._heads.record()
        self._used[place] += (copied,)
        return copied

    def _places(self, n_samples: int) -> int:
        return n_samples if self._is_complex else n_samples * self._bits // 8
