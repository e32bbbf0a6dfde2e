"""The samples of one antenna on their way to the device and through its bands."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..run.bay import Bay
from ..run.counters import FCounters
from ..run.lent_chunks import N_KEPT, LentChunks
from ..run.queues import Buckets, Chunk, read_chunks
from ..streams.lending import Lends
from ..streams.samples import Samples, Source
from .band import Band
from .narrow_band import NarrowBand
from .plan import ranges
from .sample_buffers import LoadedChunk, SampleBuffers

N_CHUNKS = 4  # chunks of samples in pinned memory
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
        self._source, self._bands, self._counters, self._ending = source, bands, counters, bay.ending
        self._chunk_packets = chunk_packets
        head, chunk = max(band.head for band in bands), chunk_packets * info.packet
        self._reach = max(band.reach for band in bands)
        self._buffers = SampleBuffers(bay, info, head, chunk, N_LOADED)
        shape = (info.n_pols, chunk if info.is_complex else chunk * info.sample_bits // 8)
        dtype = np.complex64 if info.is_complex else np.uint8
        self._lent: LentChunks[Samples] | None = None
        n_arrays = N_CHUNKS + (N_KEPT if isinstance(source, Lends) else 0)
        arrays = bay.cores.made_by("reads", lambda: [bay.backend.pinned(shape, dtype) for _ in range(n_arrays)])
        if isinstance(source, Lends):
            self._lent = LentChunks(source, arrays, bay.ending, self._dropped)
            self.chunks = self._lent.buckets
        else:
            self.chunks = Buckets([Chunk[Samples](array) for array in arrays], bay.ending, is_input=True)
        self._spare = np.empty(shape, dtype) if source.is_live and self._lent is None else np.empty(0)
        self._is_amid = False  # whether a chunk is only partly done

    def readers(self) -> dict[str, Callable[[], None]]:
        """Returns the functions of the reading threads, by thread name."""
        if self._lent is not None:
            return {"reads": self._lent.take, "returns": self._lent.give_back}
        return {"reads": self._read}

    def _read(self) -> None:
        read_chunks(self._source, self.chunks, self._spare, self._ending, self._dropped)

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

    def _dropped(self, samples: Samples) -> None:
        for counters in self._counters:
            counters.dropped()
