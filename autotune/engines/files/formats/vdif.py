"""VDIF files: frames of 1, 2, 4, 8 or 16 bits, each of one thread, in any order.

A 1-bit sample becomes a 2-bit sample with the levels -1 and 1, and a 2-bit sample a 4-bit sample with the levels -3,
-1, 1 and 3. Other samples are offset binary, and lose their offset. Times count from the frames' reference epoch, so
recordings of several stations from one half-year share their zero.
"""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from ...streams.samples import COMPLEX_BITS, SampleInfo
from .. import checks
from ..frame_numbers import ANY_NUMBER, counted_frames
from ..frame_reader import FrameReader
from ..joined_bytes import readers
from ..packing import pack_samples
from ..reading import (
    Bytes,
    HeaderField,
    HeaderOverrides,
    LackingError,
    Start,
    Tell,
    cut_off,
    one_or_more,
    parsed_one_or_more,
    refuse,
    settled,
)
from ..statements import check_frames, said_by
from ..time_order import MOST_EARLY, FramedSource
from ..vdif_headers import HEADER_BYTES, NUMBER, Frame, first_frame, frame_kind, frame_of, is_vdif
from .interface import SAMPLES

suffixes, holds, help = (".vdif",), SAMPLES, "VDIF"
header_fields = {
    "threads": HeaderField("VDIF: the thread, or the two, of the polarisations", one_or_more, parsed_one_or_more)
}
OF_MARK5B = 0xAB
BITS = {1: 2, 2: 4, 4: 4, 8: 8, 16: 16}  # bits of a sample in a frame -> bits of a sample of the source


def _levels(bits: int) -> np.ndarray:
    """Returns the samples in each byte, lowest bits first: int8 [256, 8 / bits]."""
    codes = np.arange(256)[:, np.newaxis] >> np.arange(0, 8, bits) & (1 << bits) - 1
    return (codes - 8 if bits == 4 else 2 * codes + 1 - (1 << bits)).astype(np.int8)


def _together(rows: np.ndarray) -> np.ndarray:
    """Returns each row of 8-bit numbers as one number of as many bytes, for a single lookup: [256]."""
    return np.ascontiguousarray(rows).view(f"u{rows.shape[1]}")[:, 0]


LEVELS = {bits: _levels(bits) for bits in (1, 2, 4)}
PACKED = {bits: _together(pack_samples(levels.astype(np.int16), BITS[bits])) for bits, levels in LEVELS.items()}
SAMPLES_OF = {bits: _together(levels) for bits, levels in LEVELS.items()}


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its name or its first frames."""
    return file.path.suffix in suffixes or is_vdif(file)


class VdifSamples(FramedSource):
    """A source of the samples of one or two threads, or of one or two channels of one thread. A packet is a frame.

    A frame that ``FrameReader`` finds damaged counts as missing, and so does one whose header marks its data as
    invalid.

    Raises:
        UsageError: when its first frames are wrong, or lack a needed field that is not given.
    """

    def __init__(self, file: Bytes, overrides: HeaderOverrides, tell: Tell) -> None:
        super().__init__(file, tell)
        begin = first_frame(file)
        start = file.take(begin, HEADER_BYTES)
        if len(start) < HEADER_BYTES:
            cut_off(file, "in the middle of its first header")
        self._frame = frame = frame_of(start.view("<u4"))
        self._n_samples = _n_samples(file.path, frame)
        rate = overrides.instead("sample_rate_hz", frame.rate or None)
        counted = counted_frames(file, frame_kind(frame, start.view("<u4"), ANY_NUMBER), begin, overrides.threads)
        seems = counted.n * self._n_samples
        if not rate:
            why = "its frames do not state the sample rate: give sample_rate_hz"
            by_numbers = f"{seems} (--header sample_rate_hz={seems})" if counted.n_ends else f"at least {seems}"
            raise LackingError(file.path, why, "sample_rate_hz", float(seems), f"; their numbers suggest {by_numbers}")
        per_second = Fraction(rate) / self._n_samples
        if per_second.denominator != 1 or per_second > NUMBER:
            refuse(file.path, f"{rate:g} Hz is not a whole number of frames of {self._n_samples} samples in a second")
        stated = f"sample_rate_hz={rate:.17g}, {said_by(overrides, 'sample_rate_hz')}"
        check_frames(file.path, overrides, int(per_second), counted, stated, seems, tell)
        frames = FrameReader(file, frame_kind(frame, start.view("<u4"), int(per_second)), begin)
        self._channels = overrides.channels(file.path, frame.n_channels)
        self._threads = self._found_threads(frames, overrides, int(per_second))
        present, place = frames.found_threads(), 0
        if len(present) == 2 and len(self._threads) * len(self._channels) == 1:
            place = present.index(self._threads[0])
            overrides = overrides.of_one(place)
        first = self._begin(frames, len(self._threads), int(per_second), frame_bytes=frame.n_bytes)
        self.overlap = MOST_EARLY * self._n_samples
        if first * self._n_samples > checks.MOST_FIRST:
            refuse(file.path, "the time of its first frame is after 2^61 samples: it is damaged, or not VDIF")
        n_slots = frames.n_slots(first)
        info = SampleInfo(
            sample_bits=COMPLEX_BITS if frame.is_complex else BITS[frame.bits],
            n_pols=len(self._threads) * len(self._channels),
            sample_rate_hz=float(rate),
            packet=self._n_samples,
            n_samples=None if n_slots is None else n_slots * self._n_samples,
            first_timestamp=first * self._n_samples,
            antenna=_station(frame.station),
            first_pol=place,
        )
        year, half = divmod(frame.epoch, 2)
        epoch = datetime(2000 + year, 1 + 6 * half, 1, tzinfo=UTC)
        zero = Start(Fraction(int(epoch.timestamp())), f"epoch={frame.epoch}")
        self.info = settled(file.path, info, zero, overrides, tell)

    def _decoded(self, payload: np.ndarray, channel: int) -> np.ndarray:
        frame, n, bits = self._frame, len(payload), self._frame.bits
        if bits in PACKED and frame.n_channels == 1 and not frame.is_complex:
            return np.asarray(PACKED[bits].take(payload).view(np.uint8))
        if bits in LEVELS:
            values = SAMPLES_OF[bits].take(payload).view(np.int8)
        elif bits == 8:
            values = (payload ^ 0x80).view(np.int8)
        else:
            values = (np.ascontiguousarray(payload).view("<u2") ^ np.uint16(1 << 15)).view(np.int16)
        values = values.reshape(n, -1, frame.n_channels, 2 if frame.is_complex else 1)[:, :, channel]
        if frame.is_complex:
            return values.astype(np.float32).view(np.complex64)[..., 0]
        if bits >= 8:
            return np.ascontiguousarray(values[..., 0].astype(f">i{bits // 8}")).view(np.uint8)
        return pack_samples(values[..., 0].astype(np.int16), BITS[bits])

    def _found_threads(self, frames: FrameReader, overrides: HeaderOverrides, per_second: int) -> tuple[int, ...]:
        """Returns the wanted threads: those given, or all threads of the first frames."""
        present = frames.found_threads() if self._file.size() >= self._frame.n_bytes else []
        given = overrides.threads
        threads = (given,) if isinstance(given, int) else given or tuple(present)
        most = 2 // len(self._channels)
        if len(threads) > most or len(set(threads)) < len(threads) or not set(threads) <= set(present):
            chosen = "none are chosen" if overrides.threads is None else f"{list(threads)} are chosen"
            which = "one or two of them, which become the polarisations" if most == 2 else "one of them"
            example = ",".join(map(str, present[:most]))
            why = f"its first frames are of threads {present}, and {chosen}: choose {which}, as threads={example}"
            raise LackingError(self._file.path, why, "threads", tuple(present[:most]))
        if not threads:
            cut_off(self._file, "in the middle of its first frame")
        frames.choose(threads, len(present), per_second)
        return threads


read, read_joined = readers(VdifSamples)


def _n_samples(path: Path, frame: Frame) -> int:
    """Returns the number of samples in a frame. Raises UsageError for frames that cannot be read."""
    if frame.version == OF_MARK5B:
        refuse(path, "its frames hold Mark 5B data, an encoding that cannot be read")
    if frame.bits not in BITS:
        refuse(path, f"it has VDIF samples of {frame.bits} bits, but only 1, 2, 4, 8 and 16 can be read")
    if frame.n_bytes <= frame.header_bytes:
        refuse(path, f"its first frame has a length of {frame.n_bytes} bytes: it is damaged, or not VDIF")
    n_samples = frame.n_samples
    if n_samples.denominator != 1 or (not frame.is_complex and n_samples * BITS[frame.bits] % 8):
        refuse(path, f"its frames hold {n_samples} samples of each of {frame.n_channels} channels: not whole bytes")
    return int(n_samples)


def _station(number: int) -> str:
    """Returns the name of a station: its two letters, or its number."""
    letters = chr(number >> 8) + chr(number & 255)
    is_name = number >> 8 >= ord("0") and letters.strip("\0").isprintable() and letters.isascii()
    return letters.strip("\0") if is_name else str(number)
