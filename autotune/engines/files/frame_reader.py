"""Reads the frames of some threads of a file, in the order of the file, and gets past damage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .reading import Bytes, cut_text, refuse
from .time_order import FAR, MOST_EARLY, Frames

HEAD_BYTES = 16  # bytes of a header that frames are judged by
AT_ONCE = 1 << 22  # bytes to read together
MOST_SEARCHED = 1 << 30  # bytes to search for the next header
FIRST_SEARCHED = 1 << 16  # bytes in the first step of the search
MOST_THREADS = 1 << 10
LEAST_FOUND = 4  # frames of a thread that is surely there
LOOKED_AT = 1 << 10  # frames to look at, for the threads and for the end


@dataclass(frozen=True)
class FrameKind:
    """The frames of a file. Its functions take the first words of headers, uint32 [n, 4]."""

    n_bytes: int  # length of a frame, with its header
    header_bytes: int
    key: int  # the place and
    word: int  # the value of a word that all headers share
    alike: Callable[[np.ndarray], np.ndarray]  # returns whether each may be of this file: bool [n]
    slots: Callable[[np.ndarray], np.ndarray]  # returns their times, in frames: int64 [n]
    threads: Callable[[np.ndarray], np.ndarray] = lambda words: np.zeros(len(words), np.int64)
    valid: Callable[[np.ndarray], np.ndarray] = lambda words: np.ones(len(words), bool)


def headers(file: Bytes, n_bytes: int, numbers: Sequence[int], begin: int = 0) -> np.ndarray:
    """Returns the first words of frames of ``n_bytes`` that follow each other: uint32 [n, 4]."""
    words = [file.take(begin + number * n_bytes, HEAD_BYTES) for number in numbers]
    return np.array([each.view("<u4") for each in words if len(each) == HEAD_BYTES], np.uint32).reshape(-1, 4)


class FrameReader:
    """Reads the frames of some threads. The content of other threads' frames does not matter.

    A frame whose time is near that of no frame around it is damaged, and left out; so is a frame of another kind. Where
    bytes were lost or inserted, the reader searches for the next header that is like the others and is followed by
    another; the frame in front of such a place is left out, too.
    """

    def __init__(self, file: Bytes, kind: FrameKind, begin: int = 0) -> None:
        self._file, self._kind, self._begin = file, kind, begin
        looked = headers(file, kind.n_bytes, range(LOOKED_AT), begin)
        self._looked = looked[kind.alike(looked)]  # the first headers, to find threads
        self._byte = begin  # the first byte of the next frame
        self._place_of = np.full(MOST_THREADS, -1)
        self._share = 1  # frames of the file for each wanted frame
        self._around = MOST_EARLY  # wanted frames on either side with which one is judged
        self._held: Frames | None = None  # frames that are judged with the next ones
        self._recent = np.zeros(0, np.int64)  # slots of the undamaged frames before
        self._is_lost = False  # whether no frame follows any more
        self.places = [0] if begin else []  # bytes where damage begins

    def found_threads(self) -> list[int]:
        """Returns the threads of the first frames. One of a single frame, where others have LEAST_FOUND, is damage."""
        threads, counts = np.unique(self._kind.threads(self._looked), return_counts=True)
        return [int(thread) for thread in threads[(counts > 1) | (counts.max(initial=0) < LEAST_FOUND)]]

    def choose(self, threads: Sequence[int], n_found: int, per_second: int) -> None:
        """Sets the wanted threads, of ``n_found``.

        Raises:
            UsageError: when these threads are at different times, though each is continuous.
        """
        found = self._kind.threads(self._looked)
        slots = [self._kind.slots(self._looked[found == thread]) for thread in threads]
        begins = [int(np.median(each)) for each in slots if len(each) > 1 and _near_neighbours(each).all()]
        if max(begins, default=0) - min(begins, default=0) > LOOKED_AT + MOST_EARLY:
            apart_s = (max(begins) - min(begins)) / per_second
            refuse(
                self._file.path,
                f"its threads {list(threads)} are {apart_s:.6g} s apart: choose threads of one time",
            )
        self._place_of[list(threads)] = range(len(threads))
        self._share, self._around = -(-n_found // len(threads)), MOST_EARLY * len(threads)

    def load(self, n_wanted: int) -> Frames | None:
        """Reads about ``n_wanted`` more frames. Returns the undamaged ones; None at the end.

        A frame that is far from all before it waits for those behind it.
        """
        some, is_end = self._held, False
        while not (n_used := 0 if some is None else self._n_judged(some, is_end)) and not is_end:
            if (more := self._more(n_wanted * self._share)) is None:
                is_end = True
            else:
                some = more if some is None else some.then(more)
        if some is None or not n_used:
            return None
        is_alone = len(some.slot) == 1 and not len(self._recent)
        near = self._near(some.slot)[:n_used] | is_alone
        self._held = some.where(slice(n_used, None)) if len(some.slot) > n_used else None
        good = some.where(slice(n_used)).where(near)
        behind = self.places[-1] + self._kind.n_bytes if self.places else 0  # the last damage is told
        self.places += [byte for byte in some.byte[:n_used][~near].tolist() if byte >= behind]
        self._recent = np.append(self._recent, good.slot)[-self._around :]
        return good

    def _n_judged(self, frames: Frames, is_end: bool) -> int:
        """Returns the number of frames that those behind them can make neither good nor damaged."""
        n = len(frames.slot)
        if is_end:
            return n
        far = np.flatnonzero(~self._near(frames.slot)[-self._around :])
        return max(0, n - self._around) + int(far[0]) if len(far) else n

    def _near(self, slots: np.ndarray) -> np.ndarray:
        """Returns whether each slot is near one of those around it: bool [n]. Most are near a neighbour's."""
        n, all_ = len(self._recent), np.append(self._recent, slots)
        near = _near_neighbours(all_)
        for place in n + np.flatnonzero(~near[n:]):  # frames that come late after a gap, or damaged ones
            around = all_[max(0, place - self._around) : place + self._around + 1]
            near[place] = np.count_nonzero(np.abs(around - all_[place]) < MOST_EARLY) > 1  # itself is one
        return near[n:]

    def n_slots(self, first: int) -> int | None:
        """Returns a thread's number of frames from slot ``first`` to the end; None if the file's end is damaged."""
        kind = self._kind
        n = (self._file.size() - self._begin) // kind.n_bytes
        words = headers(self._file, kind.n_bytes, range(max(0, n - LOOKED_AT), n), self._begin)
        if not (words[:, kind.key] == kind.word).all():
            return None
        words = words[kind.alike(words) & (self._place_of[kind.threads(words)] >= 0)]
        slots = kind.slots(words)
        slots = slots[_near_neighbours(slots) | (len(slots) == 1)]
        return int(slots.max()) - first + 1 if len(slots) and slots.max() >= first else None

    def end(self) -> tuple[int, str]:
        """Returns the bytes behind the last frame, and a text about them; it is empty if there are none."""
        n_left, number = self._file.size() - self._byte, (self._byte - self._begin) // self._kind.n_bytes
        if self._is_lost:
            what = f"frame {number} at byte {self._byte} is of another kind than the first one, and so is all after it"
            return n_left, f"{what}; {n_left} bytes there are left out"
        return n_left, cut_text(self._file, f"in the middle of frame {number}", n_left) if n_left > 0 else ""

    # ------------------------------------------------------------------ steps through the file
    def _more(self, n_frames: int) -> Frames | None:
        """Reads about ``n_frames`` more frames. Returns those of wanted threads; None at the end.

        It looks at one frame more: without it, the last frame may be cut.
        """
        n_bytes, kind = self._kind.n_bytes, self._kind
        n = min(n_frames + 1, max(2, AT_ONCE // n_bytes), (self._file.size() - self._byte) // n_bytes)
        if n <= 0 or self._is_lost:
            return None
        raw = self._file.take(self._byte, n * n_bytes)
        raw = raw[: len(raw) // n_bytes * n_bytes].reshape(-1, n_bytes)
        words = raw[:, :HEAD_BYTES].copy().view("<u4")
        in_step = words[:, kind.key] == kind.word
        start, n_used = self._byte, max(1, len(raw) - 1)
        if not in_step.all():
            n_used = self._past(int(np.argmin(in_step)))
        elif len(raw) == 1 and self._is_last_cut():
            n_used = self._past(1, is_last=True)
        else:
            self._byte += n_used * n_bytes
        bytes_ = start + n_bytes * np.arange(n_used)
        return self._frames_of(words[:n_used], bytes_, raw[:n_used, kind.header_bytes :])

    def _is_last_cut(self) -> bool:
        """Returns whether the last whole frame is followed by something other than a header."""
        words = self._file.take(self._byte + self._kind.n_bytes, HEAD_BYTES)
        return len(words) == HEAD_BYTES and bool(words.view("<u4")[self._kind.key] != self._kind.word)

    def _past(self, n_step: int, is_last: bool = False) -> int:
        """Skips damage after ``n_step`` frames that follow each other. Returns how many of them are whole.

        ``is_last``: without a later header, the frame in front of the damage may be cut, and is skipped.
        """
        n_bytes = self._kind.n_bytes
        lost = self._byte + n_step * n_bytes
        next_byte = self._found(lost - n_bytes + self._kind.header_bytes if n_step else lost + 1)
        if next_byte is None:
            self.places += [self._byte] * is_last
            self._is_lost, self._byte = not is_last, lost
            return n_step * (not is_last)
        self.places.append(lost)
        is_whole = (next_byte - lost) % n_bytes == 0
        self._byte = next_byte
        return n_step if is_whole else max(0, n_step - 1)

    def _found(self, byte: int) -> int | None:
        """Returns the byte of the next header that another header, or the file's end, follows."""
        n_bytes, size, step = self._kind.n_bytes, self._file.size(), FIRST_SEARCHED
        end, word = min(byte + MOST_SEARCHED, size - n_bytes + 1), 4 * self._kind.key
        while byte < end:
            n = min(step, end - byte)
            some = self._file.take(byte, n + HEAD_BYTES - 1)
            n = min(n, len(some) - HEAD_BYTES + 1)
            is_key = np.ones(max(0, n), bool)
            for k, each in enumerate(self._kind.word.to_bytes(4, "little")):
                is_key &= some[word + k : word + k + n] == each
            for at in np.flatnonzero(is_key).tolist():
                words = np.array([some[at : at + HEAD_BYTES].view("<u4")])
                if self._kind.alike(words)[0] and self._goes_on(byte + at + n_bytes, size):
                    return int(byte + at)
            byte, step = byte + max(1, n), min(2 * step, AT_ONCE)
        return None

    def _goes_on(self, byte: int, size: int) -> bool:
        """Returns whether another header is at ``byte``, or the file ends there."""
        words = self._file.take(byte, HEAD_BYTES)
        if len(words) < HEAD_BYTES:
            return byte >= size
        return bool(self._kind.alike(words.view("<u4")[np.newaxis])[0])

    def _frames_of(self, words: np.ndarray, byte: np.ndarray, payload: np.ndarray) -> Frames:
        """Returns the frames of wanted threads and of the right kind."""
        kind = self._kind
        threads, good = self._place_of[kind.threads(words)], kind.alike(words)
        self.places += byte[(threads >= 0) & ~good].tolist()
        frames = Frames(kind.slots(words), np.ones(len(words), np.int64), threads, kind.valid(words), byte, payload)
        return frames.where((threads >= 0) & good)


def _near_neighbours(slots: np.ndarray) -> np.ndarray:
    """Returns whether each slot is near the one before or the one after: bool [n]."""
    steps = np.abs(np.diff(slots, prepend=FAR, append=FAR)) <= MOST_EARLY
    return np.asarray(steps[:-1] | steps[1:])
