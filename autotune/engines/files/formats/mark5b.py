"""Mark 5B files: frames of 10,000 bytes of real samples, whose headers state neither channels nor bits.

The caller must give ``n_channels``, ``sample_bits`` (1 or 2), ``sample_rate_hz``, and ``mjd``, a day within 500 of the
recording's, since headers count days modulo 1000. Levels are -1 and 1, or -3, -1, 1 and 3. Times count from the
beginning of the recording's first day. Source: Mark 5B user's manual, Haystack Observatory, 2006, appendix A.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np

from ....core.errors import one_line
from ...streams.samples import SampleInfo, Samples
from .. import checks
from ..frame_numbers import counted_frames
from ..packing import pack_samples
from ..reading import (
    MOST_GAP_S,
    Bytes,
    HeaderField,
    HeaderOverrides,
    Start,
    Tell,
    cut_off,
    packets_in,
    refuse,
    settled,
    unix_of_mjd,
)
from ..statements import check_frames
from ..vdif_headers import headers
from .interface import SAMPLES

suffixes, holds, help = (".m5b",), SAMPLES, "Mark 5B"
HEADER_BYTES, FRAME_BYTES = 16, 10_016
SYNC = 0xABADDEED
AT_ONCE = 1 << 8  # frames
SEARCHED = 1 << 20  # bytes in one step of the search for a frame
MOST_BITS = 32  # bits of all channels together
header_fields = {
    "n_channels": HeaderField("Mark 5B: channels of a frame", checks.integer(1, checks.MOST_CHANNELS), int),
    "sample_bits": HeaderField("Mark 5B: bits of a sample, 1 or 2", checks.integer(1, 64), int),
    "mjd": HeaderField("Mark 5B: a modified Julian day within 500 of the recording's", checks.integer(0, 1 << 20), int),
}
MOST_STRANGE = 64  # frames in a row whose times cannot be of this recording
_BYTES = np.arange(256)[:, np.newaxis]
LEVELS = {  # the samples in each byte, lowest bits first; the lower one of two bits is the sign
    1: (1 - 2 * (_BYTES >> np.arange(8) & 1)).astype(np.int8),
    2: np.array([-3, 1, -1, 3], np.int8)[_BYTES >> np.arange(0, 8, 2) & 3],
}


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its name or the first words of two frames."""
    starts = [file.take(k * FRAME_BYTES, 4) for k in range(2)]
    return file.path.suffix in suffixes or all(len(each) == 4 and each.view("<u4")[0] == SYNC for each in starts)


def read(path: Path, overrides: HeaderOverrides, tell: Tell) -> "Mark5bSamples":
    """Opens a file.

    Raises:
        UsageError: when it has no frames, or a field that they lack is not given.
    """
    file = Bytes(path)
    try:
        return Mark5bSamples(file, overrides, tell)
    except BaseException:
        file.close()
        raise


class Mark5bSamples:
    """A source of the samples of one channel, or of two channels as polarisations. A packet is a frame.

    Where bytes were lost or inserted, the reader searches for the next frame that another one follows, and leaves out
    the frame in front of such a place. It also leaves out a frame whose time is not later than the one before, or more
    than an hour later.
    """

    is_live = False
    falls = ""  # frames cannot say that the band falls

    def __init__(self, file: Bytes, overrides: HeaderOverrides, tell: Tell) -> None:
        self._file, self._tell = file, tell
        self._bits, self._n_channels, self._day = _layout(file.path, overrides)
        self._channels = overrides.channels(file.path, self._n_channels)
        self._n_samples = 8 * (FRAME_BYTES - HEADER_BYTES) // (self._bits * self._n_channels)
        rate = overrides.sample_rate_hz or 0.0
        per_second = Fraction(rate) / self._n_samples
        if per_second.denominator != 1 or per_second > 1 << 15:
            refuse(file.path, f"{rate:g} Hz is not a whole number of frames of {self._n_samples} samples in a second")
        self._per_second = int(per_second)
        counted = counted_frames(file.size() // FRAME_BYTES, self._times)
        stated = f"sample_rate_hz={rate:.17g} of {self._n_channels} channels of {self._bits} bits, as they were given"
        seems = float(counted.n * self._n_samples)
        check_frames(file.path, overrides, self._per_second, counted, stated, seems, tell)
        self._byte, self._places = 0, 0  # first byte of the next frame; number of damaged places so far
        self._last: int | None = None  # slot of the last frame that was read
        self._n_strange = 0  # frames in a row whose times cannot be of this recording
        first = self._load()
        while first is not None and not len(first[0]):
            first = self._load()
        if first is None:
            refuse(file.path, "it has no Mark 5B frame that another one follows")
        self._slots, self._payloads = first  # frames that wait for a later chunk
        self._next = int(self._slots[0])
        day = self._next // (86400 * self._per_second)
        self._zero = day * 86400 * self._per_second  # slot of the stream's zero
        last = self._slots_of(file.take((file.size() // FRAME_BYTES - 1) * FRAME_BYTES, HEADER_BYTES).view("<u4")[None])
        n_slots = int(last[0]) + 1 - self._next
        info = SampleInfo(
            sample_bits=2 * self._bits,
            n_samples=n_slots * self._n_samples if n_slots > 0 else None,
            n_pols=len(self._channels),
            sample_rate_hz=rate,
            packet=self._n_samples,
            first_timestamp=(self._next - self._zero) * self._n_samples,
        )
        self.info = settled(file.path, info, Start(unix_of_mjd(day), f"mjd={day}"), overrides, tell)

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``.

        Raises:
            UsageError: when the file ends in the middle of a frame, or goes on with other times.
        """
        n_room = packets_in(out, self.info)
        rows = out.reshape(self.info.n_pols, n_room, -1)
        while not len(self._slots):
            if not self._more():
                self._must_end()
                return None
        self._next += (int(self._slots[0]) - self._next) // n_room * n_room
        received = np.zeros(n_room, bool)
        while len(self._slots) or self._more():
            n = int(np.searchsorted(self._slots, self._next + n_room))
            places = self._slots[:n] - self._next
            received[places] = True
            for row, channel in zip(rows, self._channels, strict=True):
                row[places] = self._decoded(self._payloads[:n], channel)
            self._slots, self._payloads = self._slots[n:], self._payloads[n:]
            if len(self._slots) or received[-1]:
                break
        n_came = n_room if len(self._slots) else int(np.flatnonzero(received)[-1]) + 1
        self._next += n_came
        time = (self._next - n_came - self._zero) * self._n_samples
        return Samples(time, np.tile(received[:n_came], (self.info.n_pols, 1)))

    def close(self) -> None:
        if self._places:
            where = "in one place" if self._places == 1 else f"in {self._places} places"
            self._tell(one_line(f"{self._file.path}: it is damaged {where}; frames that cannot be read are missing"))
            self._places = 0
        self._file.close()

    def _must_end(self) -> None:
        """Raises UsageError unless the file ends with a whole frame of this recording."""
        if self._n_strange > MOST_STRANGE:
            refuse(self._file.path, f"frames before byte {self._byte} have times of another recording")
        if 0 < self._file.size() - self._byte < FRAME_BYTES:
            cut_off(self._file, f"in the middle of a frame, which begins at byte {self._byte}")

    def _more(self) -> bool:
        """Reads frames for a later chunk. Returns whether there were any."""
        while (frames := self._load()) is not None:
            self._slots, self._payloads = frames
            if len(self._slots):
                return True
        return False

    def _load(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns the next good frames: slots, int64 [n], and payloads, uint8 [n, 10000]; None at the end."""
        n = min(AT_ONCE, (self._file.size() - self._byte) // FRAME_BYTES)
        if n <= 0 or self._n_strange > MOST_STRANGE:
            return None
        raw = self._file.take(self._byte, n * FRAME_BYTES).reshape(n, FRAME_BYTES)
        words = raw[:, :HEADER_BYTES].copy().view("<u4")
        behind = self._file.take(self._byte + n * FRAME_BYTES, 4)
        follows = len(behind) < 4 or behind.view("<u4")[0] == SYNC
        in_step = words[:, 0] == SYNC
        good = in_step & np.append(in_step[1:], follows)
        if not good.all():
            n = int(np.argmin(good))  # whole frames before the damage
            self._places += 1
            lost = self._byte + n * FRAME_BYTES + (HEADER_BYTES if in_step[n] else 0)
            self._byte = self._next_frame(lost)
        else:
            self._byte += n * FRAME_BYTES
        slots, kept = self._slots_of(words[:n]), []
        for place, slot in enumerate(slots.tolist()):
            is_later = self._last is None or self._last < slot <= self._last + MOST_GAP_S * self._per_second
            if slot >= 0 and is_later:
                self._last, self._n_strange = slot, 0
                kept.append(place)
            else:
                self._n_strange += 1
        return slots[kept], raw[kept, HEADER_BYTES:]

    def _next_frame(self, byte: int) -> int:
        """Returns the byte of the next frame that another one, or the file's end, follows; else the file's size."""
        size = self._file.size()
        while byte < size - FRAME_BYTES + 1:
            some = self._file.take(byte, SEARCHED + 3)
            is_sync = np.ones(len(some) - 3, bool)
            for k, each in enumerate(SYNC.to_bytes(4, "little")):
                is_sync &= some[k : len(some) - 3 + k] == each
            for at in np.flatnonzero(is_sync).tolist():
                behind = self._file.take(byte + at + FRAME_BYTES, 4)
                if behind.tobytes() == SYNC.to_bytes(4, "little") or byte + at + FRAME_BYTES == size:
                    return int(byte + at)
            byte += SEARCHED
        return size

    def _slots_of(self, words: np.ndarray) -> np.ndarray:
        """Returns times of frames, int64 [n], in frames since modified Julian day 0; -1 where a header is wrong."""
        number = (words[:, 1] & (1 << 15) - 1).astype(np.int64)
        digits = (words[:, 2:3] >> np.arange(28, -1, -4, dtype=np.uint32) & 15).astype(
            np.int64
        )  # 3 of days, 5 of seconds
        day, second = digits[:, :3] @ [100, 10, 1], digits[:, 3:] @ [10_000, 1000, 100, 10, 1]
        day = self._day + (day - self._day + 500) % 1000 - 500
        slots = (day * 86400 + second) * self._per_second + number
        good = (words[:, 0] == SYNC) & (digits <= 9).all(axis=1) & (second < 86400) & (number < self._per_second)
        return np.where(good, slots, -1)

    def _times(self, places: range) -> tuple[np.ndarray, np.ndarray]:
        """Returns the seconds and the numbers of some frames."""
        words = headers(self._file, FRAME_BYTES, places)
        words = words[words[:, 0] == SYNC]
        digits = words[:, 2:3] >> np.arange(16, -1, -4, dtype=np.uint32) & 15
        return digits.astype(np.int64) @ [10_000, 1000, 100, 10, 1], (words[:, 1] & (1 << 15) - 1).astype(np.int64)

    def _decoded(self, payload: np.ndarray, channel: int) -> np.ndarray:
        """Returns one channel of the frames' samples, packed: uint8 [n, n_bytes]."""
        values = LEVELS[self._bits].take(payload, axis=0).reshape(-1, self._n_samples, self._n_channels)
        return pack_samples(values[..., channel].astype(np.int16), 2 * self._bits)


def _layout(path: Path, overrides: HeaderOverrides) -> tuple[int, int, int]:
    """Returns the bits of a sample, the number of channels, and a day near the recording. Raises UsageError."""
    lacking = [
        name for name in ("n_channels", "sample_bits", "sample_rate_hz", "mjd") if getattr(overrides, name) is None
    ]
    if lacking:
        refuse(path, f"headers of Mark 5B do not say {' and '.join(lacking)}: give {lacking[0]}")
    assert overrides.n_channels is not None and overrides.sample_bits is not None and overrides.mjd is not None
    together = overrides.n_channels * overrides.sample_bits
    if overrides.sample_bits not in LEVELS or together > MOST_BITS or MOST_BITS % together:
        layout = f"{overrides.n_channels} channels of {overrides.sample_bits} bits"
        refuse(path, f"Mark 5B has samples of 1 or 2 bits, of 1, 2, 4, ... channels, at most 32 bits, not {layout}")
    return overrides.sample_bits, overrides.n_channels, overrides.mjd
