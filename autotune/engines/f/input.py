"""The samples of one antenna on their way to the device and through its bands."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..run.bay import Bay
from ..run.counters import FCounters
from ..run.lent_chunks import chunks_of
from ..run.queues import Chunk
from ..streams.samples import Samples, Source
from .band import Band
from .narrow_band import NarrowBand
from .plan import ranges
from .sample_buffers import LoadedChunk, SampleBuffers

N_LOADED = 3  # buffers of samples on the device


class FInput:
    """Reads chunks in a thread, and steps the bands in the caller's. A source of type Lends fills pinned memory itself.

    Args:
        chunk_packets: packets of each polarisation that go to the device together.
    """

    def __init__(
        self,
        bay: Bay,
        source: Source,
        bands: Sequence[Band | NarrowBand],
        counters: Sequence[FCounters],
        chunk_packets: int,
    ) -> None:
        info = self._info = source.info
        self._bands, self._counters = bands, counters
        self._chunk_packets = chunk_packets
        head, chunk = max(band.head for band in bands), chunk_packets * info.packet
        self._reach = max(band.reach for band in bands)
        self._buffers = SampleBuffers(bay, info, head, chunk, N_LOADED)
        shape = (info.n_pols, chunk if info.is_complex else chunk * info.sample_bits // 8)
        dtype = np.complex64 if info.is_complex else np.uint8
        self.chunks, self.readers = chunks_of(bay, source, shape, dtype, counters)
        self._is_amid = False  # whether a chunk is only partly done

    @property
    def end(self) -> int | None:
        """Returns the end of the last chunk that was taken; None before the first one."""
        return self._buffers.end

    @property
    def is_ready(self) -> bool:
        """Returns whether the next step can go on without waiting."""
        return self._is_amid or self.chunks.is_ready

    def steps(self) -> Iterator[None]:
        """Yields after each chunk, and after missing packets before it, until the source ends."""
        while (chunk := self.chunks.take()) is not None:
            assert chunk.answer is not None
            self._is_amid = True
            for missing in self._missing_before(chunk.answer.time):
                self._make(self._buffers.put(None, missing))
                yield
            self._blank(chunk)
            loaded = self._buffers.put(chunk.array, chunk.answer, chunk.read_at)
            chunk.copied = loaded.ready[-1]
            for counters in self._counters:
                counters.took(chunk.answer, self._info.packet)
            self.chunks.give_back(chunk)
            self._make(loaded)
            self._is_amid = False
            yield
        for band in self._bands:
            band.finish()

    def _blank(self, chunk: Chunk[Samples]) -> None:
        """Clears packets that only one polarisation lacks, since spectra are made if either polarisation has them."""
        assert chunk.answer is not None
        received = chunk.answer.received
        if all(band.whole_heaps for band in self._bands) or received.all():
            return
        width = chunk.array.shape[1] // self._chunk_packets
        for row, lost in zip(chunk.array, ~received & received.any(axis=0), strict=True):
            for first, end in ranges(lost):
                row[first * width : end * width] = 0

    def _missing_before(self, time: int) -> Iterator[Samples]:
        """Yields chunks of missing packets for the beginning of a gap that ends at ``time``.

        The chunk after them skips the rest, since bands need no more samples from before the gap.
        """
        begin, packet = self._buffers.end, self._info.packet
        if begin is None:
            return
        end = min(time, begin + -(-self._reach // packet) * packet)
        while begin < end:
            n = min(self._chunk_packets, (end - begin) // packet)
            yield Samples(begin, np.zeros((self._info.n_pols, n), bool))
            begin += n * packet

    def _make(self, loaded: LoadedChunk) -> None:
        self._buffers.used(*[band.take(loaded) for band in self._bands])
