"""Several files that are read as one: the pieces into which a recorder has cut a stream of frames or blocks."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import numpy as np

from .reading import Bytes, HeaderOverrides, Tell, closed_on_error, refuse

T = TypeVar("T")


class JoinedBytes(Bytes):
    """Files one after the other, read as one; the last one may grow. ``path`` is their name in errors.

    Raises:
        UsageError: from all methods, when one of the files cannot be read, or became shorter.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.path = joined_name(paths)
        self._parts: list[Bytes] = []
        with closed_on_error(self._parts):
            for path in paths:
                self._parts.append(Bytes(path))
        self._begins = [0, *accumulate(part.size() for part in self._parts[:-1])]

    def size(self) -> int:
        """Returns the total length of the files now, in bytes."""
        return self._begins[-1] + self._parts[-1].size()

    def fill(self, out: np.ndarray, offset: int) -> int:
        """Reads into ``out``, uint8 and contiguous, from byte ``offset`` on. Returns the number of bytes read."""
        rest, done = out.reshape(-1).view(np.uint8), 0
        for number in range(bisect_right(self._begins, offset) - 1, len(self._parts)):
            begin = self._begins[number]
            is_last = number == len(self._parts) - 1
            n = len(rest) - done if is_last else min(len(rest) - done, self._begins[number + 1] - offset - done)
            got = self._parts[number].fill(rest[done : done + n], offset + done - begin)
            done += got
            if got < n and not is_last:
                refuse(self._parts[number].path, "it became shorter while it was read")
            if done == len(rest):
                break
        return done

    def close(self) -> None:
        for part in self._parts:
            part.close()


def joined_name(paths: Sequence[Path]) -> Path:
    """Returns the name in errors for files that are read as one: a single path, or "a/x.0000.raw to x.0003.raw"."""
    return paths[0] if len(paths) == 1 else Path(f"{paths[0]} to {paths[-1].name}")


def opened_as(
    make: Callable[[Bytes, HeaderOverrides, Tell], T], paths: Sequence[Path], overrides: HeaderOverrides, tell: Tell
) -> T:
    """Returns the source that ``make`` makes of files that are read as one. They are closed when it raises."""
    file = JoinedBytes(paths)
    with closed_on_error([file]):
        return make(file, overrides, tell)


def readers(
    make: Callable[[Bytes, HeaderOverrides, Tell], T],
) -> tuple[
    Callable[[Path, HeaderOverrides, Tell], T],
    Callable[[Sequence[Path], HeaderOverrides, Tell], T],
]:
    """Returns a format's ``read``, which opens a file, and its ``read_joined``, for files that follow each other."""

    def read(path: Path, overrides: HeaderOverrides, tell: Tell) -> T:
        return opened_as(make, [path], overrides, tell)

    return read, partial(opened_as, make)
