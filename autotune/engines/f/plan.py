"""Plans an F-engine: chunks of samples in, runs of spectra and finished batches out. It uses no device and no data.

The plan of a stream does not depend on the lengths of chunks. Heaps and batches start at absolute multiples of their
length, so the place of a spectrum in a batch depends only on its time. The first batch begins with the first heap whose
samples the stream has, and the last batch ends with the last such heap: heaps outside do not count as missing. A
spectrum is present in a polarisation under two conditions, neither of which depends on chunks: every packet under its
window came, and no polarisation's first sample is more than ``head`` older than the newest sample used before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from ...core.errors import UsageError
from ..corrections.delays import BEFORE, DelayedSpectra, Delays

MOST_MISSING = 1 << 16  # packets of a gap in one step
MOST_LOOKS = 10_000  # steps in the search for the first heap


@dataclass(frozen=True)
class FShape:
    """The lengths of an F-engine, in input samples unless stated otherwise."""

    step: int  # distance between spectra
    window: int  # samples in one spectrum: the filter bank's, and those of a narrow band's low-pass filter
    packet: int  # samples that come, or are missing, as a whole; chunks are whole packets
    spectra_per_heap: int
    heaps_per_batch: int
    max_delay_diff: int = 0  # largest difference of delays, between polarisations and in time, without a loss
    is_complex: bool = False  # complex samples: a coarse delay does not change the centre channel's phase
    whole_heaps: bool = False  # whether incomplete heaps, and spectra that lack a polarisation, are left out

    def __post_init__(self) -> None:
        for name in ("step", "window", "packet", "spectra_per_heap", "heaps_per_batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}={getattr(self, name)} must be at least 1")
        if self.max_delay_diff < 0:
            raise UsageError(f"max_delay_diff={self.max_delay_diff} must not be negative")

    @property
    def spectra_per_batch(self) -> int:
        return self.spectra_per_heap * self.heaps_per_batch

    @property
    def batch_samples(self) -> int:
        return self.spectra_per_batch * self.step

    @property
    def head(self) -> int:
        """Returns the number of samples kept in front of a chunk, in whole packets."""
        return -(-(self.window + self.max_delay_diff) // self.packet) * self.packet


@dataclass(frozen=True)
class Batch:
    """Spectra that are ready to be quantised. Spectra that are not present have any content.

    ``fine``: float32 [n_spectra, n_pols], fine delays in samples. ``phase``: float32 [n_spectra, n_pols], radians: the
    centre channel's phase, which coarse delays do not change. ``present``: bool [n_spectra, n_pols]. ``beyond``: bool
    [n_spectra], spectra that are left out because delays differ by more than ``max_delay_diff``.
    """

    time: int  # time of the first spectrum
    fine: np.ndarray
    phase: np.ndarray
    present: np.ndarray
    beyond: np.ndarray
    begin: int = 0  # the first spectrum that the stream has samples for; it is the first one of a heap
    end: int = 0  # the spectrum after the last such one
    n_skipped: int = 0  # spectra of whole batches before this one, all of them in a gap

    def heaps(self, shape: FShape) -> np.ndarray:
        """Returns whether each heap is made, bool [n_heaps]: it has a spectrum, or with ``whole_heaps`` all of them."""
        by_heap = self.present.reshape(-1, shape.spectra_per_heap * self.present.shape[1])
        is_inside = np.arange(1, len(by_heap) + 1) * shape.spectra_per_heap <= self.end
        return np.asarray(is_inside & (by_heap.all(axis=1) if shape.whole_heaps else by_heap.any(axis=1)))

    def n_missing(self, shape: FShape) -> int:
        """Returns the number of heaps in and before this batch that the stream should have, but are not made."""
        inside = self.end // shape.spectra_per_heap - self.begin // shape.spectra_per_heap
        return self.n_skipped // shape.spectra_per_heap + inside - int(np.count_nonzero(self.heaps(shape)))

    def n_spectra_missing(self, shape: FShape) -> int:
        """Returns the number of missing spectra, over all polarisations, in heaps that the stream should have."""
        inside = slice(self.begin, self.end // shape.spectra_per_heap * shape.spectra_per_heap)
        n_pols = self.present.shape[1]
        return int(self.n_skipped * n_pols + np.count_nonzero(~self.present[inside]))


@dataclass(frozen=True)
class Run:
    """Consecutive spectra with constant coarse delays, which are present in the same polarisations."""

    place: int  # index of the first spectrum in the batch
    n: int
    first: tuple[int, ...]  # the first sample of each polarisation; a lost one has that of another
    there: tuple[bool, ...]  # whether each polarisation is present; at least one is
    batch: Batch = field(repr=False, compare=False)  # the batch, with the delays and phases of planned spectra


class FPlan:
    """The state between chunks: the next spectrum, and the packets of the head that came."""

    def __init__(self, shape: FShape, delays: Sequence[Delays]) -> None:
        self.shape, self.delays = shape, tuple(delays)
        self._next = 0  # time of the next spectrum
        self._newest = BEFORE  # the sample after the newest one used so far
        self._ready = 0  # samples before this one could be used so far
        self._low = 0  # the first sample whose flags are kept
        self._came: np.ndarray | None = None  # bool [n_pols, n_packets] from there on
        self._batch: Batch | None = None
        self._n_skipped = 0  # spectra of batches in a gap since the batch before

    def chunk(self, time: int, received: np.ndarray) -> Iterator[Run | Batch]:
        """Yields the runs and batches that the packets from sample ``time`` on complete.

        Packets between the chunk before and this one are missing, and samples from before them are not used any more.
        A caller that still has those gives chunks of missing packets first, for at least ``shape.head`` samples of the
        gap. The cost of a gap does not depend on its length.

        Args:
            received: bool [n_pols, n_packets], False where a packet is missing.

        Raises:
            UsageError: when the chunk does not start a whole number of packets after the first one, or starts before
                the end of the one before.
        """
        shape = self.shape
        if self._came is None:
            self._next = self.first_heap(time)
            self._low = self._ready = time
            self._came = np.zeros((len(self.delays), 0), bool)
        if (time - self._low) % shape.packet:
            raise UsageError(f"a chunk starts at sample {time}, in the middle of a packet of {shape.packet}")
        if time < self._end:
            raise UsageError(f"a chunk starts at sample {time}, before the end of the one before, {self._end}")
        yield from self._gap(time)
        yield from self._take(received)

    def first_heap(self, time: int) -> int:
        """Returns the time of the first heap that a stream from sample ``time`` on can make.

        Raises:
            UsageError: when the delays grow about as fast as time, so that no heap is found.
        """
        length = self.shape.spectra_per_heap * self.shape.step

        def first_by_delays_at(now: int) -> int:
            coarse = max(model.coarse_at(now) for model in self.delays)
            return -(-(time + coarse) // length) * length

        heap = first_by_delays_at(time)
        for _ in range(MOST_LOOKS):
            if (later := first_by_delays_at(heap)) <= heap:
                return heap
            heap = later
        raise UsageError(
            f"delays grow so fast that no heap was found for samples from {time} on; their rates are near 1"
        )

    def finish(self) -> Iterator[Batch]:
        """Yields the last batch, as far as the stream has samples for it."""
        if self._batch is not None:
            yield self._closed(self._batch)

    # ------------------------------------------------------------------ spectra whose samples are here
    @property
    def _end(self) -> int:
        assert self._came is not None
        return self._low + int(self._came.shape[1]) * self.shape.packet

    def _take(self, received: np.ndarray, is_gap: bool = False) -> Iterator[Run | Batch]:
        """Yields the runs of all spectra whose samples are here, and the batches that they fill.

        ``is_gap``: whether all of these spectra are missing.
        """
        assert self._came is not None
        shape = self.shape
        n_old = max(0, (self._ready - shape.head - self._low) // shape.packet)
        self._came = np.concatenate([self._came[:, n_old:], received], axis=1)
        self._low += n_old * shape.packet
        sums = None if self._came.all() else np.pad(np.cumsum(self._came, axis=1), ((0, 0), (1, 0)))
        # Delays are computed at once for all spectra that are ready if delays stay as they are, and then for the rest.
        while n := self._n_ready([model.coarse_at(self._next) for model in self.delays]):
            yield from self._spectra(n, sums, is_gap)
        self._ready = max(self._ready, self._end)
        self._batch = self._batch or self._open()  # it counts the skipped spectra if the stream ends here

    def _spectra(self, n: int, sums: np.ndarray | None, is_gap: bool) -> Iterator[Run | Batch]:
        """Yields the runs and batches of the next ``n`` spectra, or of those before the first one that is not ready."""
        shape, start = self.shape, self._next
        delayed = [model.at(start, n, shape.step) for model in self.delays]
        if not shape.is_complex:
            for each in delayed:
                put_back(each)
        while (first := (self._next - start) // shape.step) < n:
            batch = self._batch or self._open()
            place = (self._next - batch.time) // shape.step
            end = min(n, first + shape.spectra_per_batch - place)
            for pol, each in enumerate(delayed):
                batch.fine[place : place + end - first, pol] = each.fine[first:end]
                batch.phase[place : place + end - first, pol] = each.phase[first:end]
            while first < end:
                runs = [each.run(first) for each in delayed]
                coarse = [each for each, _ in runs]
                n_same = min(end, *(until for _, until in runs), first + self._n_ready(coarse)) - first
                if n_same == 0:
                    return
                if not is_gap:
                    yield from self._runs(batch, [self._next - each for each in coarse], n_same, sums)
                self._newest = max(self._newest, self._last_sample(self._next, coarse) + (n_same - 1) * shape.step)
                self._next += n_same * shape.step
                first += n_same
            if self._next == batch.time + shape.batch_samples:
                yield self._closed(batch)

    def _n_ready(self, coarse: Sequence[int]) -> int:
        """Returns the number of spectra, from the next one on, whose samples are here if all have its coarse delays."""
        end = self._last_sample(self._next, coarse)
        return 0 if max(self._newest, end) > self._end else (self._end - end) // self.shape.step + 1

    def _last_sample(self, time: int, coarse: Sequence[int]) -> int:
        """Returns the sample after the newest one of the spectrum at ``time``."""
        return time - min(coarse) + self.shape.window

    def _gap(self, time: int) -> Iterator[Batch]:
        """Yields the batches of missing spectra up to sample ``time``, without whole batches amid a long gap."""
        packet = self.shape.packet
        near = self.shape.head // packet
        if (time - self._end) // packet > near:
            yield from self._missing(near)  # no sample from before the gap is used after these packets
            yield from self._skip(time)
        while self._end < time:
            yield from self._missing(min(MOST_MISSING, (time - self._end) // packet))

    def _missing(self, n_packets: int) -> Iterator[Batch]:
        for item in self._take(np.zeros((len(self.delays), n_packets), bool), is_gap=True):
            assert isinstance(item, Batch)
            yield item

    def _skip(self, time: int) -> Iterator[Batch]:
        """Skips to a batch near the gap's end, ``time``. Yields the batch under way as it is.

        All spectra before that batch end in the gap, since delays differ by at most the room in the head.
        """
        shape = self.shape
        coarse = min(model.coarse_at(time) for model in self.delays)
        to = (time + coarse - shape.head) // shape.batch_samples * shape.batch_samples
        if to <= self._next:
            return
        if self._batch is not None:
            self._next = self._batch.time + shape.batch_samples
            yield self._closed(self._batch)
        self._n_skipped += (to - self._next) // shape.step
        self._next = to
        before = to - shape.step
        self._newest = max(self._newest, self._last_sample(before, [model.coarse_at(before) for model in self.delays]))
        self._came, self._low = np.zeros((len(self.delays), 0), bool), time
        self._ready = time

    def _open(self) -> Batch:
        n, n_pols = self.shape.spectra_per_batch, len(self.delays)
        fine, phase = np.zeros((n, n_pols), np.float32), np.zeros((n, n_pols), np.float32)
        time = self._next // self.shape.batch_samples * self.shape.batch_samples
        begin = (self._next - time) // self.shape.step
        present, beyond = np.zeros((n, n_pols), bool), np.zeros(n, bool)
        self._batch = Batch(time, fine, phase, present, beyond, begin, n_skipped=self._n_skipped)
        self._n_skipped = 0
        return self._batch

    def _closed(self, batch: Batch) -> Batch:
        """Returns the batch under way as it is now. The next spectrum opens another one."""
        self._batch = None
        return replace(batch, end=(self._next - batch.time) // self.shape.step)

    def _runs(self, batch: Batch, firsts: Sequence[int], n: int, sums: np.ndarray | None) -> Iterator[Run]:
        """Marks the present ones of the next ``n`` spectra, and yields them in runs.

        A lost polarisation gets the start of one that is present, so that the kernels have samples to read.

        Args:
            firsts: the first samples of the first spectrum.
            sums: the cumulative number of packets that came, from _low on; None if all came.
        """
        shape = self.shape
        place = (self._next - batch.time) // shape.step
        present, end = batch.present[place : place + n], max(firsts) + shape.window
        present[...] = True
        most_beyond = 0
        for pol, first in enumerate(firsts):
            # These spectra begin before the oldest sample that may be used, or before the oldest one that is here.
            n_beyond = n if first < end - shape.head else -((first + shape.head - self._newest) // shape.step)
            n_lost = min(n, max(0, -((first - self._low) // shape.step)))
            most_beyond = max(most_beyond, min(n, n_beyond))
            present[:n_lost, pol] = False
            if sums is not None:
                from_low = first - self._low + shape.step * np.arange(n_lost, n)
                oldest, last = from_low // shape.packet, (from_low + shape.window - 1) // shape.packet
                present[n_lost:, pol] &= sums[pol, last + 1] - sums[pol, oldest] == last + 1 - oldest
        batch.beyond[place : place + most_beyond] = True
        present[:most_beyond] = False
        if shape.whole_heaps:
            present[...] = present.all(axis=1, keepdims=True)
        changes = () if present.all() else (np.flatnonzero(np.diff(present, axis=0).any(axis=1)) + 1).tolist()
        for begin, end in pairwise([0, *changes, n]):
            is_present = tuple(present[begin].tolist())
            if any(is_present):
                other = firsts[is_present.index(True)]
                of_pols = zip(firsts, is_present, strict=True)
                first_samples = tuple((first if here else other) + begin * shape.step for first, here in of_pols)
                yield Run(place + begin, end - begin, first_samples, is_present, batch)


def put_back(delayed: DelayedSpectra) -> None:
    """Adds pi / 2 to phases for each sample of coarse delay, which turns real samples' centre channel by -pi / 2."""
    for begin, end, coarse in zip(
        delayed.begins, [*delayed.begins[1:], len(delayed.phase)], delayed.coarse, strict=True
    ):
        delayed.phase[begin:end] += np.pi / 2 * (coarse & 3)


def ranges(flags: np.ndarray) -> list[tuple[int, int]]:
    """Returns (first, end) of each run of True in bool [n]."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
