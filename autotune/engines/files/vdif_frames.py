"""Reads the frames of some threads of a VDIF file, in the order of the file, and gets past damage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .reading import MOST_GAP_S, Bytes, cut_off, refuse
from .vdif_headers import LEGACY_BYTES, Frame, alike, headers

AT_ONCE = 1 << 22  # bytes to read together
MOST_AT_ONCE = 1 << 10  # frames
MOST_SEARCHED = 1 << 30  # bytes to search for the next header
FIRST_SEARCHED = 1 << 16  # bytes in the first step of the search
MOST_EARLY = 64  # frames of a thread by which others may come before it
MOST_THREADS = 1 << 10
LOOKED_AT = 256  # frames to look at, for the threads and for the end
SECONDS, NUMBER = np.uint32((1 << 30) - 1), np.uint32((1 << 24) - 1)  # bits of words 0 and 1
SIZE = 2  # the header's word with the frame's size
FAR = 1 << 62  # a slot that is not near any other


@dataclass(frozen=True)
class Frames:
    """Frames of the wanted threads, in the order of the file."""

    slot: np.ndarray  # int64 [n]: time in frames since the epoch
    thread: np.ndarray  # int64 [n]: the thread's index among the wanted ones
    valid: np.ndarray  # bool [n]
    byte: np.ndarray  # int64 [n]: first byte in the file
    payload: np.ndarray  # uint8 [n, bytes]

    def where(self, some: np.ndarray | slice) -> "Frames":
        """Returns some of the frames. ``some``: bool [n], int [n], or a slice, which copies nothing."""
        return Frames(self.slot[some], self.thread[some], self.valid[some], self.byte[some], self.payload[some])

    def then(self, later: "Frames") -> "Frames":
        """Returns these frames followed by ``later``."""
        both = zip(vars(self).values(), vars(later).values(), strict=True)
        return Frames(*(np.concatenate(pair) for pair in both))


class FrameReader:
    """Reads the frames of some threads. The content of other threads' frames does not matter.

    A frame whose time is near that of neither neighbour is damaged, and left out; so is a frame of another kind. Where
    bytes were lost or inserted, the reader searches for the next header that is like the first one and is followed by
    another; the frame in front of such a place is left out, too.
    """

    def __init__(self, file: Bytes, frame: Frame, per_second: int, begin: int = 0) -> None:
        self._file, self._frame, self._per_second, self._begin = file, frame, per_second, begin
        self._first = file.take(begin, LEGACY_BYTES).view("<u4")
        looked = headers(file, frame.n_bytes, range(LOOKED_AT), begin)
        self._looked = looked[alike(looked, self._first)]  # the first headers, to find threads
        self._byte = begin  # the first byte of the next frame
        self._place_of = np.full(MOST_THREADS, -1)
        self._share = 1  # frames of the file for each wanted frame
        self._held: Frames | None = None  # the last frame that was read: it is judged with the next one
        self._last: int | None = None  # slot of the last undamaged frame that was read
        self._odd: int | None = (
            None  # byte of the first frame of another kind since the last one of the first frame's kind
        )
        self._places = [0] if begin else []  # bytes where damage begins
        self.damage = ""  # text about the damage that ends reading

    def found_threads(self) -> list[int]:
        """Returns the threads of the first frames."""
        return sorted(set(_threads(self._looked).tolist()))

    def choose(self, threads: Sequence[int], n_found: int) -> None:
        """Sets the wanted threads, of ``n_found``.

        Raises:
            UsageError: when these threads are at different times, though each is continuous.
        """
        slots = [self._slots(self._looked[_threads(self._looked) == thread]) for thread in threads]
        begins = [int(np.median(each)) for each in slots if len(each) > 1 and _near(each, FAR).all()]
        if max(begins, default=0) - min(begins, default=0) > LOOKED_AT + MOST_EARLY:
            apart_s = (max(begins) - min(begins)) / self._per_second
            refuse(
                self._file.path,
                f"its threads {list(threads)} are {apart_s:.6g} s apart: choose threads of one time",
            )
        self._place_of[list(threads)] = range(len(threads))
        self._share = -(-n_found // len(threads))

    def load(self, n_wanted: int = MOST_AT_ONCE) -> Frames | None:
        """Reads about ``n_wanted`` more frames. Returns the undamaged ones; None at the end.

        The last frame is only looked at, since it shows whether the one before is damaged. It is read when it is alone.
        """
        some = self._held
        while (some is None or len(some.slot) < 2) and (more := self._more(n_wanted * self._share)) is not None:
            some = more if some is None else some.then(more)
        if some is None or not len(some.slot):
            return None
        n_used = max(1, len(some.slot) - 1)
        self._held = some.where(slice(n_used, None)) if len(some.slot) > n_used else None
        good = self._near(some.slot)[:n_used]
        n_used = self._in_order(some.where(slice(n_used)), good)
        good = good[:n_used]
        return some.where(slice(n_used) if good.all() else np.flatnonzero(good))

    def n_slots(self, first: int) -> int | None:
        """Returns a thread's number of frames from slot ``first`` to the end; None if the file's end is damaged."""
        n = (self._file.size() - self._begin) // self._frame.n_bytes
        words = headers(self._file, self._frame.n_bytes, range(max(0, n - LOOKED_AT), n), self._begin)
        if not (words[:, SIZE] == self._first[SIZE]).all():
            return None
        words = words[alike(words, self._first) & (self._place_of[_threads(words)] >= 0)]
        slots = self._slots(words)
        slots = slots[_near(slots, FAR) | (len(slots) == 1)]
        return int(slots.max()) - first + 1 if len(slots) and slots.max() >= first else None

    def end(self) -> None:
        """Raises UsageError unless the file ends with a whole frame of the first frame's kind."""
        n_bytes = self._frame.n_bytes
        if self._odd is not None and not self.damage:
            self._places = [byte for byte in self._places if byte < self._odd]
            self._stop(self._odd, "is of another kind than the first one")
        if self.damage:
            refuse(self._file.path, self.damage)
        if 0 < self._file.size() - self._byte < n_bytes:
            cut_off(self._file, f"in the middle of frame {(self._byte - self._begin) // n_bytes}")

    def told_damage(self) -> str:
        """Returns a line about the damage that was skipped since the last call, or an empty one."""
        if not self._places:
            return ""
        n, first, self._places = len(self._places), self._places[0], []
        where = f"at byte {first}" if n == 1 else f"in {n} places, at first at byte {first}"
        return f"{self._file.path}: it is damaged {where}; frames that cannot be read there are missing"

    # ------------------------------------------------------------------ steps through the file
    def _more(self, n_frames: int) -> Frames | None:
        """Reads about ``n_frames`` more frames. Returns those of wanted threads; None at the end.

        It looks at one frame more: without it, the last frame may be cut.
        """
        n_bytes = self._frame.n_bytes
        n = min(n_frames + 1, max(2, AT_ONCE // n_bytes), (self._file.size() - self._byte) // n_bytes)
        if n <= 0 or self.damage:
            return None
        raw = self._file.take(self._byte, n * n_bytes)
        raw = raw[: len(raw) // n_bytes * n_bytes].reshape(-1, n_bytes)
        words = raw[:, :LEGACY_BYTES].copy().view("<u4")
        in_step = words[:, SIZE] == self._first[SIZE]
        start, n_used = self._byte, max(1, len(raw) - 1)
        if not in_step.all():
            n_used = self._past(int(np.argmin(in_step)))
        elif len(raw) == 1 and self._is_last_cut():
            n_used = self._past(1) if self._found(start + self._frame.header_bytes) is not None else self._past_last()
        else:
            self._byte += n_used * n_bytes
        bytes_ = start + n_bytes * np.arange(n_used)
        return self._frames_of(words[:n_used], bytes_, raw[:n_used, self._frame.header_bytes :])

    def _is_last_cut(self) -> bool:
        """Returns whether the last whole frame is followed by something other than a header."""
        words = self._file.take(self._byte + self._frame.n_bytes, LEGACY_BYTES)
        return len(words) == LEGACY_BYTES and bool(words.view("<u4")[SIZE] != self._first[SIZE])

    def _past_last(self) -> int:
        """Skips the last frame, which may be cut. Returns the number of whole frames, 0."""
        self._places.append(self._byte)
        self._byte += self._frame.n_bytes
        return 0

    def _past(self, n_step: int) -> int:
        """Skips damage after ``n_step`` frames that follow each other. Returns how many of them are whole."""
        n_bytes = self._frame.n_bytes
        lost = self._byte + n_step * n_bytes
        next_byte = self._found(lost - n_bytes + self._frame.header_bytes if n_step else lost + 1)
        if next_byte is None:
            self._stop(lost, "is of another kind than the first one")
            self._byte = lost
            return n_step
        self._places.append(lost)
        is_whole = (next_byte - lost) % n_bytes == 0
        self._byte = next_byte
        return n_step if is_whole else max(0, n_step - 1)

    def _found(self, byte: int) -> int | None:
        """Returns the byte of the next header like the first one that another header, or the file's end, follows."""
        n_bytes, size, step = self._frame.n_bytes, self._file.size(), FIRST_SEARCHED
        end = min(byte + MOST_SEARCHED, size - n_bytes + 1)
        while byte < end:
            n = min(step, end - byte)
            some = self._file.take(byte, n + LEGACY_BYTES - 1)
            n = min(n, len(some) - LEGACY_BYTES + 1)
            is_size = np.ones(max(0, n), bool)
            for k, each in enumerate(self._first[SIZE : SIZE + 1].view(np.uint8)):
                is_size &= some[8 + k : 8 + k + n] == each
            for at in np.flatnonzero(is_size).tolist():
                words = np.array([some[at : at + LEGACY_BYTES].view("<u4")])
                if alike(words, self._first)[0] and self._goes_on(byte + at + n_bytes, size):
                    return int(byte + at)
            byte, step = byte + max(1, n), min(2 * step, AT_ONCE)
        return None

    def _goes_on(self, byte: int, size: int) -> bool:
        """Returns whether a header like the first one is at ``byte``, or the file ends there."""
        words = self._file.take(byte, LEGACY_BYTES)
        if len(words) < LEGACY_BYTES:
            return byte >= size
        return bool(alike(words.view("<u4")[np.newaxis], self._first)[0])

    # ------------------------------------------------------------------ judging
    def _frames_of(self, words: np.ndarray, byte: np.ndarray, payload: np.ndarray) -> Frames:
        """Returns the frames of wanted threads and of the first frame's kind."""
        threads = self._place_of[_threads(words)]
        good = alike(words, self._first)
        odd = np.flatnonzero((threads >= 0) & ~good)
        some = np.flatnonzero((threads >= 0) & good)
        self._places += byte[odd].tolist()
        if len(some):
            self._odd = None
        if len(later := odd[odd > some.max(initial=-1)]) and self._odd is None:
            self._odd = int(byte[later[0]])
        which = slice(None) if len(some) == len(words) else some  # a slice needs no copy
        frames = Frames(self._slots(words), threads, words[:, 0] >> 31 == 0, byte, payload)
        return frames.where(which)

    def _slots(self, words: np.ndarray) -> np.ndarray:
        return np.asarray((words[:, 0] & SECONDS).astype(np.int64) * self._per_second + (words[:, 1] & NUMBER))

    def _near(self, slots: np.ndarray) -> np.ndarray:
        """Returns whether each frame's time is near that of the frame before or after: bool [n]."""
        if len(slots) == 1 and self._last is None:
            return np.ones(1, bool)
        return _near(slots, FAR if self._last is None else self._last)

    def _in_order(self, frames: Frames, good: np.ndarray) -> int:
        """Returns the number of frames before the first one whose time cannot be of the same recording."""
        good_slots = frames.slot[good]
        if not len(good_slots):
            return len(frames.slot)
        steps = np.diff(good_slots, prepend=good_slots[0] if self._last is None else self._last)
        wrong = (steps < -MOST_EARLY) | (steps > MOST_GAP_S * self._per_second)
        n = len(frames.slot)
        if wrong.any():
            first = int(np.argmax(wrong))
            n = int(np.flatnonzero(good)[first])
            why = f"{steps[first] / self._per_second:.6g} s later than the one before"
            self._stop(int(frames.byte[n]), f"is {why}: another recording, or another sample rate")
            self._held, good_slots = None, good_slots[:first]
        if len(good_slots):
            self._last = int(good_slots[-1])
        return n

    def _stop(self, byte: int, why: str) -> None:
        """Makes reading end with an error before a frame."""
        self.damage = f"frame {(byte - self._begin) // self._frame.n_bytes} at byte {byte} {why}"


def _threads(words: np.ndarray) -> np.ndarray:
    return np.asarray(words[:, 3] >> 16 & MOST_THREADS - 1)


def _near(slots: np.ndarray, last: int) -> np.ndarray:
    """Returns whether each slot is near the one before (for the first: ``last``) or the one after: bool [n]."""
    steps = np.abs(np.diff(slots, prepend=last, append=FAR)) <= MOST_EARLY
    return np.asarray(steps[:-1] | steps[1:])
