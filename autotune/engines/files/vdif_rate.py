"""Guesses the sample rate of VDIF, whose frames need not state it."""

from bisect import bisect_left

from .reading import Bytes
from .vdif_frames import LOOKED_AT, MOST_EARLY, NUMBER, SECONDS
from .vdif_headers import LEGACY_BYTES, Frame, alike, headers


def guessed_rate(file: Bytes, frame: Frame) -> tuple[float, bool]:
    """Returns the sample rate in Hz, estimated from the largest frame number near the end of the first second.

    The second value is True if the file ends within that second, so that the rate may be higher.
    """
    n_frames = file.size() // frame.n_bytes
    second = int(headers(file, frame.n_bytes, [0])[0, 0] & SECONDS)

    def is_later(number: int) -> bool:
        return bool((headers(file, frame.n_bytes, [number])[:, 0] & SECONDS > second).any())

    end = bisect_left(range(n_frames), True, key=is_later)
    words = headers(file, frame.n_bytes, range(max(0, end - LOOKED_AT), min(n_frames, end + MOST_EARLY)))
    words = words[alike(words, file.take(0, LEGACY_BYTES).view("<u4"))]
    return float((int((words[:, 1] & NUMBER).max(initial=0)) + 1) * frame.n_samples), end == n_frames
