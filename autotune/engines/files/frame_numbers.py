"""Counts the frames in a second by their numbers, from which the sample rate follows."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from .frame_reader import FrameKind, headers
from .reading import Bytes
from .time_order import MOST_EARLY

MOST_ENDS = 3  # ends of seconds to look at
FEW = 4  # a second's first frames have smaller numbers
NEAR = 16  # a number that is further from all others is damaged
ANY_NUMBER = 1 << 24  # larger than any frame's number: frames in a second of a kind whose rate is not known


@dataclass(frozen=True)
class Counted:
    """``n``: the largest number of a frame, plus 1; ``n_ends``: ends of seconds near which it was looked for."""

    n: int
    n_ends: int


def counted_frames(file: Bytes, kind: FrameKind, first: int = 0) -> Counted:
    """Returns what frames from byte ``first`` on tell. Without the end of a second there may be more in one.

    ``kind``: of ANY_NUMBER frames in a second.
    """
    n_frames = (file.size() - first) // kind.n_bytes

    def times(places: range) -> tuple[np.ndarray, np.ndarray]:
        """Returns the seconds and the numbers of some frames."""
        words = headers(file, kind.n_bytes, places, first)
        return np.divmod(kind.slots(words[kind.alike(words)]), ANY_NUMBER)

    numbers, n_ends, begin = np.zeros(0, np.int64), 0, 0
    while begin < n_frames and n_ends < MOST_ENDS:
        seconds, _ = times(range(begin, min(begin + MOST_EARLY, n_frames)))
        if not len(seconds):
            break
        second = int(np.median(seconds))

        def is_later(place: int, second: int = second) -> bool:
            return bool((times(range(place, place + 1))[0] > second).any())

        end = bisect_left(range(n_frames), True, lo=begin, key=is_later)
        here = times(range(max(begin, end - MOST_EARLY), min(n_frames, end + MOST_EARLY)))
        numbers = np.append(numbers, here[1][here[0] == second])
        seconds, later = times(range(end, min(end + MOST_EARLY, n_frames)))
        n_ends += bool(len(seconds)) and np.median(seconds) == second + 1 and later.min() < FEW
        begin = max(end, begin + 1)
    numbers = np.unique(numbers)
    good = numbers[1:][np.diff(numbers) <= NEAR]
    return Counted(int((good if len(good) else numbers).max(initial=0)) + 1, n_ends)
