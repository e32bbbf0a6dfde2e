"""Small arrays on their way to the device: they are written to pinned memory and copied while the CPU goes on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .backend import Backend, DeviceArray, Event, Stream

N_SLOTS = 4  # copies that may be under way


class Staging:
    """Sends some arrays together, each or the first part of it, in the order of a stream.

    Args:
        arrays: (shape, dtype) of each.
    """

    def __init__(self, backend: Backend, *arrays: tuple[Sequence[int], Any]) -> None:
        self._slots = [[backend.pinned(shape, dtype) for shape, dtype in arrays] for _ in range(N_SLOTS)]
        self._read: list[Event | None] = [None] * N_SLOTS
        self._number = 0

    def send(self, stream: Stream, *given: tuple[Any, DeviceArray]) -> None:
        """Copy the values of each (values, to) to the first len(values) entries of ``to``."""
        place = self._number % N_SLOTS
        if (read := self._read[place]) is not None:
            read.wait()
        for (values, to), memory in zip(given, self._slots[place], strict=True):
            n = len(values)
            np.copyto(memory[:n], values, casting="same_kind")
            stream.send(to[:n], memory[:n])
        self._read[place] = stream.record()
        self._number += 1
