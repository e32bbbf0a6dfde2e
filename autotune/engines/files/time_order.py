"""Frames and blocks in the order of their times, from files in which some are early, late, twice or missing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ..streams.samples import SampleInfo, Samples
from .losses import CUT_OFF, DAMAGED, DOUBLES, OUT_OF_ORDER, Losses
from .reading import MOST_GAP_S, Bytes, Tell, packets_in, refuse

MOST_EARLY = 256  # frames of a thread that may lie in front of an earlier one
MOST_WAITING = 1 << 28  # bytes of frames that may wait for earlier ones
MOST_STRANGE = 16  # frames in a row that are left out for a time far ahead; then that is the time
REMEMBERED = 1 << 16  # frames of each thread, to recognise doubles
FAR = 1 << 62  # a slot that is not near any other


@dataclass(frozen=True)
class Frames:
    """Frames, or blocks, in the order of a file."""

    slot: np.ndarray  # int64 [n]: time in packets
    n_slots: np.ndarray  # int64 [n]: packets in each
    thread: np.ndarray  # int64 [n]: the thread's index among the wanted ones
    valid: np.ndarray  # bool [n]
    byte: np.ndarray  # int64 [n]: first byte in the file
    payload: np.ndarray  # [n, ..]: the content, or what finds it

    def where(self, some: np.ndarray | slice) -> "Frames":
        """Returns some of the frames. ``some``: bool [n], int [n], or a slice, which copies nothing."""
        if isinstance(some, np.ndarray) and some.dtype == bool and some.all():
            return self
        return Frames(*(values[some] for values in vars(self).values()))

    def then(self, later: "Frames") -> "Frames":
        """Returns these frames followed by ``later``."""
        if not len(self.slot):
            return later
        both = zip(vars(self).values(), vars(later).values(), strict=True)
        return Frames(*(np.concatenate(pair) for pair in both))


class Loader(Protocol):
    """Reads frames in the order of the file."""

    places: list[int]  # bytes where damage begins, which was skipped

    def load(self, n_wanted: int) -> Frames | None:
        """Returns about so many more frames; None at the end."""

    def end(self) -> tuple[int, str]:
        """Returns the bytes behind the last frame, and a text about them; it is empty if the file is whole."""


class TimeOrder:
    """Puts frames into the order of time.

    A frame may lie in front of ``most`` frames that are earlier. One that comes later than that is left out, and so is
    one that came before, or is more than an hour ahead of the others.

    Args:
        n_threads: threads, whose frames share times.
        step: slots from one frame of a thread to the next.
        most_gap: slots by which a frame may be ahead of the others.
    """

    def __init__(self, loader: Loader, n_threads: int, most: int, step: int, most_gap: float) -> None:
        self._loader, self.n_threads, self._most = loader, n_threads, most * n_threads
        self._step, self._most_gap = step, most_gap
        self._came = np.full((n_threads, REMEMBERED), FAR)  # the slot of the last frame with this remainder
        self._newest: int | None = None
        self._n_strange = 0  # frames in a row that are far ahead
        self.n_doubles = self.n_out = 0
        self.begin = -FAR  # the slot before which frames come too late
        self.waiting: Frames | None = None
        n = 0
        while n < self._most and self._took(self._most - n):
            n = 0 if self.waiting is None else len(self.waiting.slot)
        if self.waiting is not None and len(slot := self.waiting.slot):
            first = int(slot[0]) - most * step
            if np.count_nonzero(slot < first) > len(slot) // 2:  # the first one is astray
                first = int(np.median(slot)) - most * step
            self.begin = int(slot[slot >= first].min())
            self.n_out += int((slot + self.waiting.n_slots <= self.begin).sum())

    @property
    def earliest(self) -> int | None:
        """Returns the slot of the earliest frame that waits; None if none does."""
        return None if self.waiting is None or not len(self.waiting.slot) else int(self.waiting.slot.min())

    def until(self, end: int, n_wanted: int) -> Iterator[Frames]:
        """Yields frames from before slot ``end``, as they come, until none is expected any more.

        Frames that go on behind ``end`` are yielded again by a later call.
        """
        while True:
            if (some := self.waiting) is not None:
                self.waiting = some.where(some.slot + some.n_slots > end)
                if (is_here := (some.slot < end) & (some.slot + some.n_slots > self.begin)).any():
                    yield some.where(is_here)
                if len(self.waiting.slot) >= self._most:
                    return
            if not self._took(n_wanted):
                return

    def _took(self, n_wanted: int) -> bool:
        """Loads frames that may be used. Returns whether there were any more."""
        if (more := self._loader.load(n_wanted)) is None:
            return False
        more = more.where(self._is_good(more))
        self.waiting = more if self.waiting is None else self.waiting.then(more)
        return True

    def _is_good(self, frames: Frames) -> np.ndarray:
        """Returns which frames are of use, bool [n], and counts the others. The later one of doubles is right."""
        slot, thread = frames.slot, frames.thread
        if not len(slot):
            return np.ones(0, bool)
        if self._newest is None:
            self._newest = int(slot[0])
        again = self._came[thread, slot // self._step % REMEMBERED] == slot
        firsts = np.unique(slot * self.n_threads + thread, return_index=True)[1]
        again[np.setdiff1d(np.arange(len(slot)), firsts, assume_unique=True)] = True
        late = slot + frames.n_slots <= self.begin
        strange = slot > self._newest + self._most_gap
        self._n_strange = int(strange.sum()) + self._n_strange * int(strange.all())
        if self._n_strange > MOST_STRANGE:
            strange[:] = False
        self.n_doubles += int((again & ~strange).sum())
        self.n_out += int((strange | late & ~again).sum())
        good = ~late & ~strange
        self._came[thread[good], slot[good] // self._step % REMEMBERED] = slot[good]
        self._newest = max(self._newest, int(slot[good].max(initial=-FAR)))
        return np.asarray(good)


class FramedSource:
    """A source of frames or blocks: what the readers of VDIF, Mark 5B and GUPPI RAW share.

    They call ``_begin``, set ``info``, and decode frames in ``_decoded``, or put blocks in place in ``_put``.
    """

    is_live = False
    falls = ""  # the header field that says that the band falls
    unit: ClassVar[str] = "frame"
    most_early: ClassVar[int] = MOST_EARLY
    info: SampleInfo
    _order: TimeOrder
    _channels: tuple[int, ...]
    _offset = 0  # the time of slot 0 in samples

    def __init__(self, file: Bytes, tell: Tell) -> None:
        self._file, self._losses = file, Losses(file.path, tell)

    def _begin(self, loader: Loader, n_threads: int, per_second: float, step: int = 1, frame_bytes: int = 1) -> int:
        """Reads the first frames, and returns the slot of the earliest. Raises UsageError when there is none."""
        self._loader = loader
        self._most = max(1, min(self.most_early, MOST_WAITING // (frame_bytes * n_threads)))
        self._order = TimeOrder(loader, n_threads, self._most, step, MOST_GAP_S * per_second)
        if self._order.earliest is None:
            refuse(self._file.path, loader.end()[1] or f"it has no {self.unit}s that can be read")
        return self._order.begin

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``. Raises UsageError when the file cannot be read."""
        order, n_room, n_threads = self._order, packets_in(out, self.info), self._order.n_threads
        rows = out.reshape(len(out), n_room, -1)
        newest: Frames | None = None  # the frames of the last slot so far in this chunk
        while newest is None:
            seen, received = np.zeros((n_threads, n_room), bool), np.zeros((len(out), n_room), bool)
            for here in order.until(order.begin + n_room, n_room * n_threads):
                self._put(here, rows, seen, received)
                newest = newest.then(here) if newest else here
                newest = newest.where(newest.slot == newest.slot.max())
                if seen.all():
                    break
            if newest is None:
                if (earliest := order.earliest) is None:
                    n_left, text = self._loader.end()
                    self._losses.note(CUT_OFF, n_left, "bytes", text)
                    return None
                order.begin += (earliest - order.begin) // n_room * n_room  # nothing came until there
        if order.earliest is None and not seen.all():
            n_room = int(np.flatnonzero(seen.any(axis=0))[-1]) + 1
            if n_room > 1 and not seen[:, n_room - 1].all():  # the other thread's frame may still be written
                n_room, order.waiting = n_room - 1, newest
        order.begin += n_room
        return Samples((order.begin - n_room) * self.info.packet + self._offset, received[:, :n_room])

    def _put(self, frames: Frames, rows: np.ndarray, seen: np.ndarray, received: np.ndarray) -> None:
        """Decodes frames into the rows of a chunk, [n_pols, n_packets, ..], which begins at ``_order.begin``.

        ``seen``: bool [n_threads, n_packets], the packets that need no more frames. ``received``: those that came.
        """
        seen[frames.thread, frames.slot - self._order.begin] = True
        for thread in range(len(seen)):
            good = frames.where((frames.thread == thread) & frames.valid)
            places = good.slot - self._order.begin
            for row, channel in enumerate(self._channels, thread * len(self._channels)):
                if len(places):
                    rows[row, places], received[row, places] = self._decoded(good.payload, channel), True

    def _decoded(self, payload: np.ndarray, channel: int) -> np.ndarray:
        """Returns one channel of the frames' samples: packed uint8 [n, n_bytes], or complex64 [n, n_samples]."""
        raise NotImplementedError

    def close(self) -> None:
        """Tell what is lost, and close the file."""
        order, places, units = self._order, self._loader.places, f"{self.unit}s"
        where = (f"in {len(places)} places, at first " if len(places) > 1 else "") + f"at byte {min(places, default=0)}"
        late = f"more than {self._most} {units} too late, or an hour ahead, are left out"
        for what, n, unit, text in (
            (DAMAGED, len(places), "places", f"it is damaged {where}; {units} that cannot be read there are missing"),
            (DOUBLES, order.n_doubles, units, f"{units} that are there twice are read once: {order.n_doubles}"),
            (OUT_OF_ORDER, order.n_out, units, f"{units} that come {late}: {order.n_out}"),
        ):
            self._losses.note(what, n, unit, text if n else "")
        self._losses.told()
        self._file.close()
