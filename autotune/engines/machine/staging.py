"""Sends small arrays to the device: they are written to pinned memory and copied while the CPU works."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .backend import Backend, DeviceArray, Event, Stream

N_SLOTS = 4  # the most copies under way


class Staging:
    """Sends up to MOST_SENT arrays together, or the first part of each, in the order of a stream.

    Args:
        arrays: the (shape, dtype) of each array.
    """

    def __init__(self, backend: Backend, *arrays: tuple[Sequence[int], Any]) -> None:
        self._slots = [[backend.pinned(shape, dtype) for shape, dtype in arrays] for _ in range(N_SLOTS)]
        self._read: list[Event | None] = [None] * N_SLOTS
        self._place = 0

    def arrays(self) -> Sequence[np.ndarray]:
        """Returns the pinned arrays to fill for the next ``send``. Waits until the device has read them."""
        if (read := self._read[self._place]) is not None:
            read.wait()
        return self._slots[self._place]

    def send(self, stream: Stream, *to: DeviceArray) -> None:
        """Copy the first len(to) entries of each array to its target."""
        slot = self._slots[self._place]
        stream.send([(each, memory[: len(each)]) for each, memory in zip(to, slot, strict=True) if len(each)])
        self._read[self._place] = stream.record()
        self._place = (self._place + 1) % N_SLOTS
