"""VDIF files: frames of 2 or 8 bits, of one thread each, in any order.

A sample of 2 bits becomes one of 4 bits, since its four levels are -3, -1, 1 and 3 there. Times are counted from the
reference epoch of the frames, so that recordings of several stations of one half-year share their zero.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from ..stream import COMPLEX_BITS, SampleInfo, Samples
from . import checks
from .reading import MOST_GAP_S, Bytes, Given, Start, Tell, cut_off, packets_in, refuse, settled

LEGACY_BYTES, HEADER_BYTES = 16, 32
AT_ONCE = 1 << 22  # bytes that are read together
MOST_AT_ONCE = 1 << 10  # frames
MOST_EARLY = 64  # frames of a thread by which others may come before it
WITH_RATE = (1, 3, 4)  # extended data versions that state the sample rate
OF_MARK5B = 0xAB
OFFSET = 0x80  # of 8 bits: offset binary
MOST_THREADS = 1 << 10
LOOKED_AT = 256  # frames, to find the threads
SECONDS, NUMBER = np.uint32((1 << 30) - 1), np.uint32((1 << 24) - 1)  # bits of words 0 and 1
ALIKE = np.array([1 << 30, 63 << 24, 0xFFFFFFFF, 63 << 26], np.uint32)  # bits of all frames: kind, epoch, size, coding

_LEVELS = np.array([-3, -1, 1, 3], np.int8)[np.arange(256)[:, np.newaxis] >> np.arange(0, 8, 2) & 3]
_PACKED = (_LEVELS[:, ::2] << 4 | _LEVELS[:, 1::2] & 15).view(np.uint16)[:, 0]  # of a byte, its 4 samples of 4 bits


@dataclass(frozen=True)
class Frame:
    """What the header of a frame says, and all frames must say alike but for thread, seconds and number."""

    is_legacy: bool
    epoch: int  # half-years since 2000
    n_bytes: int  # with the header
    n_channels: int
    bits: int
    is_complex: bool
    station: int
    version: int  # of the extended data; -1: none
    rate: int  # as the extended data have it, in Hz; 0: they do not

    @property
    def header_bytes(self) -> int:
        return LEGACY_BYTES if self.is_legacy else HEADER_BYTES

    @property
    def n_samples(self) -> Fraction:
        """Returns the samples of each channel in a frame."""
        bits = self.n_channels * self.bits * (2 if self.is_complex else 1)
        return Fraction(8 * (self.n_bytes - self.header_bytes), bits)


def frame_of(words: np.ndarray) -> Frame:
    """Reads the header of a frame, uint32 [8]."""
    word = [int(w) for w in words]
    is_legacy = bool(word[0] >> 30 & 1)
    version = -1 if is_legacy else word[4] >> 24
    rate = (word[4] & (1 << 23) - 1) * (10**6 if word[4] >> 23 & 1 else 10**3) if version in WITH_RATE else 0
    is_complex = bool(word[3] >> 31)
    return Frame(
        is_legacy,
        word[1] >> 24 & 63,
        (word[2] & (1 << 24) - 1) * 8,
        1 << (word[2] >> 24 & 31),
        (word[3] >> 26 & 31) + 1,
        is_complex,
        word[3] & 0xFFFF,
        version,
        rate if is_complex else 2 * rate,  # the width of a channel, for real samples
    )


def is_vdif(start: np.ndarray, size: int) -> bool:
    """Returns whether a file that begins so may be one: VDIF has no mark, but its second frame is like the first."""
    if len(start) < HEADER_BYTES:
        return False
    frame = frame_of(start[:HEADER_BYTES].view("<u4"))
    return frame.header_bytes < frame.n_bytes <= size and frame.bits <= 16 and frame.n_channels <= 1 << 16


def open_vdif(path: Path, given: Given, tell: Tell) -> "VdifSamples":
    """Opens a file.

    Raises:
        UsageError: when its first frames are wrong, or do not say what is needed and not given.
    """
    file = Bytes(path)
    try:
        return VdifSamples(file, given, tell)
    except BaseException:
        file.close()
        raise


@dataclass(frozen=True)
class Frames:
    """Frames of the threads that are wanted, in the order of the file."""

    slot: np.ndarray  # int64 [n]: their time in frames since the epoch
    thread: np.ndarray  # int64 [n]: the place of theirs among those that are wanted
    valid: np.ndarray  # bool [n]
    payload: np.ndarray  # uint8 [n, bytes]

    def where(self, some: np.ndarray) -> "Frames":
        """Returns some of them; ``some``: bool [n]."""
        return Frames(self.slot[some], self.thread[some], self.valid[some], self.payload[some])

    def then(self, later: "Frames") -> "Frames":
        """Returns these and then others."""
        both = zip(vars(self).values(), vars(later).values(), strict=True)
        return Frames(*(np.concatenate(pair) for pair in both))


class VdifSamples:
    """A source of the samples of one or two threads, or of one or two channels of one thread. A packet is a frame.

    Frames may come up to 64 frames of a thread too early. One whose time is near to that of neither of its neighbours
    in the file is damaged, and did not come; neither did one whose header says that its data are invalid.
    """

    is_live = False
    falls = ""  # frames do not say it

    def __init__(self, file: Bytes, given: Given, tell: Tell) -> None:
        self._file = file
        start = file.take(0, HEADER_BYTES)
        if len(start) < HEADER_BYTES:
            cut_off(file, "in the middle of its first header")
        self._frame = frame = frame_of(start.view("<u4"))
        self._first_words = start.view("<u4")[:4] & ALIKE
        self._n_samples = _n_samples(file.path, frame)
        rate = given.sample_rate_hz or frame.rate
        if not rate:
            refuse(file.path, "its frames do not state the sample rate: give sample_rate_hz")
        per_second = Fraction(rate) / self._n_samples
        if per_second.denominator != 1 or per_second > NUMBER:
            refuse(file.path, f"{rate:g} Hz are no whole number of frames of {self._n_samples} samples in a second")
        self._per_second = int(per_second)
        self._at = 0  # the next frame of the file
        self._damage = ""  # of that one
        self._last: int | None = None  # slot of the last one that was read and is not damaged
        self._channels = _channels(file.path, frame, given)
        self._threads = self._found_threads(given)
        self._place_of = np.full(MOST_THREADS, -1)
        self._place_of[list(self._threads)] = range(len(self._threads))
        first = self._load()
        if first is None or not len(first.slot):
            refuse(file.path, self._damage or f"it does not begin with frames of threads {list(self._threads)}")
        self._waiting, slot = first, first.slot  # for a later chunk
        self._next = int(slot[np.abs(slot - slot[0]) <= MOST_EARLY].min())  # slot of the next chunk
        if self._next * self._n_samples > checks.MOST_TIME:
            refuse(file.path, "its first frame is of a time after 2^62 samples: it is damaged, or no VDIF")
        info = SampleInfo(
            sample_bits=COMPLEX_BITS if frame.is_complex else 4 if frame.bits == 2 else 8,
            n_pols=len(self._threads) * len(self._channels),
            sample_rate_hz=float(rate),
            packet=self._n_samples,
            first_timestamp=self._next * self._n_samples,
            antenna=_station(frame.station),
        )
        year, half = divmod(frame.epoch, 2)
        epoch = datetime(2000 + year, 1 + 6 * half, 1, tzinfo=UTC)
        zero = Start(Fraction(int(epoch.timestamp())), f"epoch={frame.epoch}")
        self.info = settled(file.path, info, zero, given, tell)

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``.

        Raises:
            UsageError: when a frame is cut off, is of another kind than the first one, or is more than an hour after,
                or 64 frames before, the one in front of it.
        """
        n_room, n_threads = packets_in(out, self.info), len(self._threads)
        rows = out.reshape(self.info.n_pols, n_room, -1)
        seen, received = np.zeros((n_threads, n_room), bool), np.zeros((self.info.n_pols, n_room), bool)
        newest: Frames | None = None  # of this chunk: those of its last slot that came
        at_end = False
        while True:
            end, slot = self._next + n_room, self._waiting.slot
            here = self._waiting.where((slot >= self._next) & (slot < end))
            self._waiting = later = self._waiting.where(slot >= end)
            if len(here.slot):
                self._put(here, rows, seen, received)
                newest = newest.then(here) if newest else here
                newest = newest.where(newest.slot == newest.slot.max())
            if seen.all():
                break
            if at_end or (len(later.slot) and later.slot.max() >= end + MOST_EARLY):
                if newest or not len(later.slot):
                    break
                self._next += (int(later.slot.min()) - self._next) // n_room * n_room  # nothing came until there
            elif more := self._load(n_room * n_threads):
                self._waiting = later.then(more)
            else:
                at_end = True
        if newest is None:
            self._end()
            return None
        if not len(self._waiting.slot) and not seen.all():
            n_room = int(newest.slot[0]) + 1 - self._next
            if n_room > 1 and not seen[:, n_room - 1].all():  # the other thread's frame may still be written
                n_room, self._waiting = n_room - 1, newest
        self._next += n_room
        return Samples((self._next - n_room) * self._n_samples, received[:, :n_room])

    def close(self) -> None:
        self._file.close()

    def _end(self) -> None:
        """Raises UsageError unless the file ends with a whole frame."""
        if self._damage:
            refuse(self._file.path, self._damage)
        if self._file.size() % self._frame.n_bytes:
            cut_off(self._file, f"in the middle of frame {self._at}")

    def _put(self, frames: Frames, rows: np.ndarray, seen: np.ndarray, received: np.ndarray) -> None:
        """Puts frames of a chunk into its rows, [n_pols, n_packets, ...]."""
        n_channels = len(self._channels)
        for thread in range(len(self._threads)):
            mine = frames.where(frames.thread == thread)
            seen[thread, mine.slot - self._next] = True
            good = mine.where(mine.valid)
            for row, channel in enumerate(self._channels, thread * n_channels):
                if len(good.slot):
                    rows[row, good.slot - self._next] = self._decoded(good.payload, channel)
                    received[row, good.slot - self._next] = True

    def _decoded(self, payload: np.ndarray, channel: int) -> np.ndarray:
        """Returns one channel of the samples of frames: uint8 [n, n_bytes], packed, or complex64 [n, n_samples]."""
        frame, n = self._frame, len(payload)
        if frame.bits == 2 and frame.n_channels == 1 and not frame.is_complex:
            return np.asarray(_PACKED.take(payload).view(np.uint8))
        values = _LEVELS[payload] if frame.bits == 2 else (payload ^ OFFSET).view(np.int8)
        values = values.reshape(n, -1, frame.n_channels, 2 if frame.is_complex else 1)[:, :, channel]
        if frame.is_complex:
            return values.astype(np.float32).view(np.complex64)[..., 0]
        packed = values[..., 0] if frame.bits == 8 else values[:, ::2, 0] << 4 | values[:, 1::2, 0] & 15
        return packed.view(np.uint8)

    # ------------------------------------------------------------------ frames
    def _load(self, n_wanted: int = MOST_AT_ONCE) -> Frames | None:
        """Reads about so many more frames; returns those that are wanted, None where there are no more.

        The last frame that is there is looked at, and read when it is the only one: it says whether the one before it
        is damaged.
        """
        if self._damage:
            return None
        n_bytes = self._frame.n_bytes
        n = min(n_wanted + 1, max(2, AT_ONCE // n_bytes), self._file.size() // n_bytes - self._at)
        if n <= 0:
            return None
        raw = self._file.take(self._at * n_bytes, n * n_bytes)
        raw = raw[: len(raw) // n_bytes * n_bytes].reshape(-1, n_bytes)
        words = raw[:, :LEGACY_BYTES].copy().view("<u4")
        alike = ((words & ALIKE) == self._first_words).all(axis=1)
        n_alike = len(alike) if alike.all() else int(np.argmin(alike))
        slots = (words[:, 0] & SECONDS).astype(np.int64) * self._per_second + (words[:, 1] & NUMBER)
        if n_alike < n:
            self._stop(n_alike, "is of another kind than the first one")
        n_used = min(n_alike, max(1, n - 1))
        good = self._near(slots[:n_alike])[:n_used]
        n_used = self._in_order(slots[:n_used], good)
        self._at += n_used
        threads = self._place_of[words[:n_used, 3] >> 16 & MOST_THREADS - 1]
        some = np.flatnonzero(good[:n_used] & (threads >= 0))
        valid = words[some, 0] >> 31 == 0
        return Frames(slots[some], threads[some], valid, raw[some, self._frame.header_bytes :])

    def _near(self, slots: np.ndarray) -> np.ndarray:
        """Returns which frames have a time near to that of the one before or behind: bool [n]."""
        far = 1 << 62
        steps = np.abs(np.diff(slots, prepend=far if self._last is None else self._last, append=far)) <= MOST_EARLY
        return np.asarray(steps[:-1] | steps[1:] | (len(slots) == 1 and self._last is None))

    def _in_order(self, slots: np.ndarray, good: np.ndarray) -> int:
        """Returns how many frames come before one whose time is not that of one recording."""
        good_slots = slots[good]
        if not len(good_slots):
            return len(slots)
        steps = np.diff(good_slots, prepend=good_slots[0] if self._last is None else self._last)
        wrong = (steps < -MOST_EARLY) | (steps > MOST_GAP_S * self._per_second)
        if wrong.any():
            first = int(np.argmax(wrong))
            number = int(np.flatnonzero(good)[first])
            seconds = steps[first] / self._per_second
            self._stop(
                number, f"is {seconds:.6g} s later than the one before: another recording, or another sample rate"
            )
            good_slots = good_slots[:first]
            slots = slots[:number]
        if len(good_slots):
            self._last = int(good_slots[-1])
        return len(slots)

    def _stop(self, number: int, why: str) -> None:
        """Has reading end before a frame, with an error; ``number``: from the next one on."""
        at = self._at + number
        self._damage = f"frame {at} at byte {at * self._frame.n_bytes} {why}"

    def _found_threads(self, given: Given) -> tuple[int, ...]:
        """Returns the threads that are wanted: those given, or all of the first frames."""
        n_bytes = self._frame.n_bytes
        n = min(LOOKED_AT, self._file.size() // n_bytes)
        words = [self._file.take(number * n_bytes + 12, 4).view("<u4") for number in range(n)]
        found = sorted({int(word[0] >> 16 & MOST_THREADS - 1) for word in words if len(word)})
        threads = given.threads or tuple(found)
        most = 2 // len(self._channels)
        if len(threads) > most or len(set(threads)) < len(threads) or not set(threads) <= set(found):
            refuse(
                self._file.path,
                f"its first frames are of threads {found}, and wanted are {list(threads)}: choose threads=, "
                f"{'one or two of them, which are the polarisations' if most == 2 else 'one of them'}",
            )
        if not threads:
            cut_off(self._file, "in the middle of its first frame")
        return threads


def _n_samples(path: Path, frame: Frame) -> int:
    """Returns the samples of a frame; refuses what is not read."""
    if frame.version == OF_MARK5B:
        refuse(path, "its frames hold Mark 5B data, which is another encoding: it is not read")
    if frame.bits not in (2, 8):
        refuse(path, f"it has samples of {frame.bits} bits, and only 2 and 8 are read")
    if frame.n_bytes <= frame.header_bytes:
        refuse(path, f"its first frame has a length of {frame.n_bytes} bytes: it is damaged, or no VDIF")
    n_samples = frame.n_samples
    if n_samples.denominator != 1 or (frame.bits == 2 and not frame.is_complex and n_samples % 2):
        refuse(path, f"its frames hold {n_samples} samples of each of {frame.n_channels} channels: not whole bytes")
    return int(n_samples)


def _channels(path: Path, frame: Frame, given: Given) -> tuple[int, ...]:
    """Returns the channels that are wanted: one, or two that are polarisations."""
    if not isinstance(given.channel, tuple):
        return (given.one_channel(path, frame.n_channels),)
    wanted = given.channel
    if len(set(wanted)) != 2 or not all(0 <= channel < frame.n_channels for channel in wanted):
        refuse(path, f"it has {frame.n_channels} channels, and channel={wanted} are not two of them")
    return wanted


def _station(number: int) -> str:
    """Returns the name of a station: two letters, or its number."""
    letters = chr(number >> 8) + chr(number & 255)
    is_name = number >> 8 >= ord("0") and letters.strip("\0").isprintable() and letters.isascii()
    return letters.strip("\0") if is_name else str(number)
