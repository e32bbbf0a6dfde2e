"""Counts the frames in a second by their numbers, from which the sample rate follows."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .frame_reader import FrameKind, headers
from .reading import Bytes
from .time_order import MOST_EARLY

MOST_ENDS = 3  # ends of seconds to look at
FEW = 4  # a second's first frames have smaller numbers
NEAR = 16  # a number that is further from all others is damaged
MOST_TOGETHER = 64  # frames among which is one of a wanted thread
ANY_NUMBER = 1 << 24  # larger than any frame's number: frames in a second of a kind whose rate is not known


@dataclass(frozen=True)
class Counted:
    """``n``: the largest number of a frame, plus 1; ``n_ends``: ends of seconds near which it was looked for."""

    n: int
    n_ends: int


def counted_frames(file: Bytes, kind: FrameKind, first: int = 0, threads: int | Sequence[int] | None = None) -> Counted:
    """Returns what frames from byte ``first`` on tell. Without the end of a second there may be more in one.

    Args:
        kind: of ANY_NUMBER frames in a second.
        threads: those whose frames count, since others may have clocks of their own; None: all.
    """
    n_frames = (file.size() - first) // kind.n_bytes

    def times(places: range) -> tuple[np.ndarray, np.ndarray]:
        """Returns the seconds and the numbers of some frames."""
        words = headers(file, kind.n_bytes, places, first)
        words = words[kind.alike(words)]
        words = words if threads is None else words[np.isin(kind.threads(words), threads)]
        return np.divmod(kind.slots(words), ANY_NUMBER)

    n_looked = 1 if threads is None else MOST_TOGETHER
    numbers, n_ends, begin, second = np.zeros(0, np.int64), 0, 0, -1
    while begin < n_frames and n_ends < MOST_ENDS:
        seconds, _ = times(range(begin, min(begin + MOST_EARLY, n_frames)))
        found, counts = np.unique(seconds[seconds > second], return_counts=True)
        if not len(found):
            break
        # the first one; damaged times have fewer frames
        second = int(found[np.argmax(counts >= min(FEW, counts.max()))])

        def is_later(place: int, second: int = second) -> bool:
            return bool((times(range(place, place + n_looked))[0][:1] > second).any())

        end = bisect_left(range(n_frames), True, lo=begin, key=is_later)
        here = times(range(max(begin, end - MOST_EARLY), min(n_frames, end + MOST_EARLY)))
        numbers = np.append(numbers, here[1][here[0] == second])
        seconds, later = times(range(end, min(end + MOST_EARLY, n_frames)))
        n_ends += end > begin and bool(len(seconds)) and np.median(seconds) == second + 1 and later.min() < FEW
        begin = max(end, begin + 1)
    numbers = np.unique(numbers)
    good = numbers[1:][np.diff(numbers) <= NEAR]
    return Counted(int((good if len(good) else numbers).max(initial=0)) + 1, n_ends)
