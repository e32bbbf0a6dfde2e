"""A new file that grows piece by piece."""

import os
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

from .reading import refuse, refuse_existing


def put(file: IO[bytes], data: memoryview, byte: int) -> int:
    """Writes all data into an unbuffered file, from ``byte`` on. Returns the byte behind them."""
    while data:
        n = os.pwrite(file.fileno(), data, byte)
        data, byte = data[n:], byte + n
    return byte


class AppendedFile:
    """A new file that only grows. All bytes written so far can be read at any time.

    Raises:
        UsageError: when it exists or cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = 0  # bytes written so far
        try:
            self._file = open(path, "xb", buffering=0)  # noqa: SIM115
        except FileExistsError:
            refuse_existing(path)
        except (OSError, ValueError) as error:
            refuse(path, f"it cannot be made: {getattr(error, 'strerror', None) or error}")

    def append(self, *pieces: bytes | np.ndarray) -> None:
        """Write pieces one after the other, or none of them.

        Raises:
            UsageError: when they cannot be stored, for example on a full disk. Earlier bytes stay in the file.
        """
        byte = self._size
        try:
            for piece in pieces:
                whole = piece if isinstance(piece, bytes) else np.ascontiguousarray(piece).data
                byte = put(self._file, memoryview(whole).cast("B"), byte)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self._size)
            refuse(self.path, f"it cannot be written: {error.strerror}")
        self._size = byte

    def close(self) -> None:
        self._file.close()
