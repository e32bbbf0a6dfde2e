"""Mark 5B files: frames of 10,000 bytes of real samples, whose headers state neither channels nor bits.

The caller must give ``n_channels``, ``sample_bits`` (1 or 2), ``sample_rate_hz``, and ``mjd``, a day within 500 of the
recording's, since headers count days modulo 1000. Levels are -1 and 1, or -3, -1, 1 and 3. Times count from the
beginning of the recording's first day. Source: Mark 5B user's manual, Haystack Observatory, 2006, appendix A.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np

from ...streams.samples import SampleInfo
from .. import checks
from ..frame_numbers import ANY_NUMBER, counted_frames
from ..frame_reader import HEAD_BYTES, FrameKind, FrameReader
from ..joined_bytes import readers
from ..packing import pack_samples
from ..reading import (
    Bytes,
    HeaderField,
    HeaderOverrides,
    Start,
    Tell,
    refuse,
    settled,
    unix_of_mjd,
)
from ..statements import check_frames
from ..time_order import MOST_EARLY, FramedSource
from .interface import SAMPLES

suffixes, holds, help = (".m5b",), SAMPLES, "Mark 5B"
FRAME_BYTES = 10_016
SYNC = 0xABADDEED
NUMBER = np.uint32((1 << 15) - 1)  # bits of word 1
PLACES = 10 ** np.arange(4, -1, -1)  # the values of decimal places
MOST_BITS = 32  # bits of all channels together
header_fields = {
    "n_channels": HeaderField("Mark 5B: channels of a frame", checks.integer(1, checks.MOST_CHANNELS), int),
    "sample_bits": HeaderField("Mark 5B: bits of a sample, 1 or 2", checks.integer(1, 64), int),
    "mjd": HeaderField("Mark 5B: a modified Julian day within 500 of the recording's", checks.integer(0, 1 << 20), int),
}
_BYTES = np.arange(256)[:, np.newaxis]
LEVELS = {  # the samples in each byte, lowest bits first; the lower one of two bits is the sign
    1: (1 - 2 * (_BYTES >> np.arange(8) & 1)).astype(np.int8),
    2: np.array([-3, 1, -1, 3], np.int8)[_BYTES >> np.arange(0, 8, 2) & 3],
}


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its name or the first words of two frames."""
    starts = [file.take(k * FRAME_BYTES, 4) for k in range(2)]
    return file.path.suffix in suffixes or all(len(each) == 4 and each.view("<u4")[0] == SYNC for each in starts)


class Mark5bSamples(FramedSource):
    """A source of one or two channels, which become the polarisations. A packet is a frame.

    Raises:
        UsageError: when it has no frames, or a field that they lack is not given.
    """

    def __init__(self, file: Bytes, overrides: HeaderOverrides, tell: Tell) -> None:
        super().__init__(file, tell)
        self._bits, self._n_channels, near_day = _layout(file.path, overrides)
        self._channels = overrides.channels(file.path, self._n_channels)
        self._n_samples = 8 * (FRAME_BYTES - HEAD_BYTES) // (self._bits * self._n_channels)
        rate = overrides.sample_rate_hz or 0.0
        per_second = Fraction(rate) / self._n_samples
        if per_second.denominator != 1 or per_second > 1 << 15:
            refuse(file.path, f"{rate:g} Hz is not a whole number of frames of {self._n_samples} samples in a second")
        counted = counted_frames(file, _kind(near_day, ANY_NUMBER))
        stated = f"sample_rate_hz={rate:.17g} of {self._n_channels} channels of {self._bits} bits, as they were given"
        check_frames(file.path, overrides, int(per_second), counted, stated, counted.n * self._n_samples, tell)
        frames = FrameReader(file, _kind(near_day, int(per_second)))
        frames.choose((0,), 1, int(per_second))
        first = self._begin(frames, 1, int(per_second), frame_bytes=FRAME_BYTES)
        self.overlap = MOST_EARLY * self._n_samples
        day = first // (86400 * int(per_second))
        self._offset = -day * 86400 * int(per_second) * self._n_samples
        n_slots = frames.n_slots(first)
        info = SampleInfo(
            sample_bits=2 * self._bits,
            n_samples=None if n_slots is None else n_slots * self._n_samples,
            n_pols=len(self._channels),
            sample_rate_hz=rate,
            packet=self._n_samples,
            first_timestamp=first * self._n_samples + self._offset,
        )
        self.info = settled(file.path, info, Start(unix_of_mjd(day), f"mjd={day}"), overrides, tell)

    def _decoded(self, payload: np.ndarray, channel: int) -> np.ndarray:
        values = LEVELS[self._bits].take(payload, axis=0).reshape(-1, self._n_samples, self._n_channels)
        return pack_samples(values[..., channel].astype(np.int16), 2 * self._bits)


read, read_joined = readers(Mark5bSamples)


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


def _kind(near_day: int, per_second: int) -> FrameKind:
    """Returns the frames of a file, whose days are within 500 of ``near_day``."""

    def digits(words: np.ndarray) -> np.ndarray:
        """Returns 3 digits of days and 5 of seconds."""
        return np.asarray(words[:, 2:3] >> np.arange(28, -1, -4, dtype=np.uint32) & 15).astype(np.int64)

    def alike(words: np.ndarray) -> np.ndarray:
        is_time = (digits(words) <= 9).all(axis=1) & (digits(words)[:, 3:] @ PLACES < 86400)
        return np.asarray((words[:, 0] == SYNC) & is_time & ((words[:, 1] & NUMBER) < per_second))

    def slots(words: np.ndarray) -> np.ndarray:
        day = digits(words)[:, :3] @ PLACES[2:]
        day = near_day + (day - near_day + 500) % 1000 - 500
        return np.asarray((day * 86400 + digits(words)[:, 3:] @ PLACES) * per_second + (words[:, 1] & NUMBER))

    return FrameKind(FRAME_BYTES, HEAD_BYTES, 0, SYNC, alike, slots)
