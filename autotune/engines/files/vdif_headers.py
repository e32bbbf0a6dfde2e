"""Headers of VDIF frames: their fields, and the place of the first one in a file."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .frame_reader import MOST_THREADS, FrameKind, headers
from .reading import Bytes

LEGACY_BYTES, HEADER_BYTES = 16, 32
WITH_RATE = (1, 3, 4)  # extended data versions that state the sample rate
ALIKE = np.array([1 << 30, 63 << 24, 0xFFFFFFFF, 63 << 26], np.uint32)  # bits that all frames share
MOST_DAMAGED, SEARCHED, MOST_FRAME = 1 << 24, 1 << 20, 1 << 20  # bytes: limits of the search for the first frame
SECONDS, NUMBER = np.uint32((1 << 30) - 1), np.uint32((1 << 24) - 1)  # bits of words 0 and 1
SIZE = 2  # the header's word with the frame's size
SOME_BITS = (0, 1, 3, 7, 15)  # bits of a sample, minus 1


@dataclass(frozen=True)
class Frame:
    """The header of a frame. In a file headers differ only in thread, seconds and number."""

    is_legacy: bool
    epoch: int  # half-years since 2000
    n_bytes: int  # length, including the header
    n_channels: int
    bits: int
    is_complex: bool
    station: int
    version: int  # version of the extended data; -1 without them
    rate: int  # sample rate in Hz from the extended data; 0 if they lack it

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
        rate if is_complex else 2 * rate,  # VDIF states the width of a channel, half the rate of real samples
    )


def is_vdif(file: Bytes) -> bool:
    """Returns whether a file may be VDIF. It has no magic number, but one of the next frames must be like the first."""
    start, size = file.take(0, HEADER_BYTES), file.size()
    if len(start) < HEADER_BYTES:
        return False
    frame = frame_of(start.view("<u4"))
    if not frame.header_bytes < frame.n_bytes <= size or frame.bits > 16 or frame.n_channels > 1 << 16:
        return False
    words = headers(file, frame.n_bytes, range(1, 4))
    return not len(words) or bool(alike(words, start.view("<u4")).any())


def first_frame(file: Bytes) -> int:
    """Returns the byte at which frames begin: 0, unless there is no frame and three alike follow each other later.

    This skips damage at a file's beginning, of at most 16 MiB, for frames of at most 1 MiB.
    """
    if is_vdif(file):
        return 0
    for byte in range(0, min(file.size(), MOST_DAMAGED), SEARCHED):
        data = file.take(byte, SEARCHED + 2 * MOST_FRAME + LEGACY_BYTES)
        n = max(0, min(SEARCHED, len(data) - LEGACY_BYTES))
        word = [data[k : k + n].astype(np.uint32) for k in range(7, LEGACY_BYTES)]  # each header from byte 7 on
        n_bytes = 8 * (word[1] | word[2] << 8 | word[3] << 16).astype(np.int64)
        may_be = (word[0] >> 6 == 0) & (word[4] >> 5 <= 1) & np.isin(word[8] >> 2 & 31, SOME_BITS)
        may_be &= (n_bytes > HEADER_BYTES) & (n_bytes <= MOST_FRAME)
        at = np.flatnonzero(may_be)
        at = at[at + 2 * n_bytes[at] + LEGACY_BYTES <= len(data)]
        words = [data[(at + k * n_bytes[at])[:, np.newaxis] + np.arange(LEGACY_BYTES)].view("<u4") for k in range(3)]
        kinds = [each & ALIKE for each in words]
        good = (kinds[0] == kinds[1]).all(axis=1) & (kinds[0] == kinds[2]).all(axis=1)
        if good.any():
            return byte + int(at[np.argmax(good)])
    return 0


def alike(words: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Returns whether each header, uint32 [n, 4], is of the same kind as ``first``: bool [n]."""
    return np.asarray(((words & ALIKE) == (first[:4] & ALIKE)).all(axis=1))


def frame_kind(frame: Frame, first: np.ndarray, per_second: int) -> FrameKind:
    """Returns the frames of a file whose first header has the words ``first``."""
    return FrameKind(
        frame.n_bytes,
        frame.header_bytes,
        SIZE,
        int(first[SIZE]),
        alike=lambda words: alike(words, first),
        slots=lambda words: (words[:, 0] & SECONDS).astype(np.int64) * per_second + (words[:, 1] & NUMBER),
        threads=lambda words: words[:, 3] >> 16 & MOST_THREADS - 1,
        valid=lambda words: words[:, 0] >> 31 == 0,
    )
