"""Small arrays on their way to the device: they are written to pinned memory and copied while the CPU goes on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .backend import Backend, DeviceArray, Event, Stream

N_SLOTS = 4  # copies that may be under way


class Staging:
    """Sends arrays of one shape, or the first part of it, in the order of a stream."""

    def __init__(self, backend: Backend, shape: Sequence[int], dtype: Any) -> None:
        self._slots = [backend.pinned(shape, dtype) for _ in range(N_SLOTS)]
        self._read: list[Event | None] = [None] * N_SLOTS
        self._number = 0

    def send(self, values: Any, to: DeviceArray, stream: Stream) -> None:
        """Copy ``values`` to the first len(values) entries of ``to``."""
        place, n = self._number % N_SLOTS, len(values)
        if (read := self._read[place]) is not None:
            read.wait()
        slot = self._slots[place][:n]
        np.copyto(slot, values, casting="same_kind")
        stream.send(to[:n], slot)
        self._read[place] = stream.record()
        self._number += 1
