"""Outlets whose heaps are described again and again, since receivers may start at any time."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import spead2.send

from .outlet import Outlet

MOST_PLACES = 1024  # places in memory whose heaps are kept
M = TypeVar("M")  # the heaps of one place in memory
EVERY_S = 5.0


class DescribedOutlet(Generic[M]):
    """Sends heaps, and their descriptors at once and then repeatedly, from a thread.

    Heaps are built once for each place in the engine's memory.

    Args:
        group: items without values, which describe the items of heaps.
        every_s: seconds from one time of descriptors to the next.
        first_s: seconds until the second time; None takes ``every_s``.
    """

    def __init__(
        self, outlet: Outlet, group: spead2.send.ItemGroup, every_s: float = EVERY_S, first_s: float | None = None
    ) -> None:
        self._made: dict[int, M] = {}  # the heaps, by the address of their memory
        self._outlet, self._group = outlet, group
        self._every_s, self._first_s = every_s, every_s if first_s is None else first_s
        self._is_closed = threading.Event()
        self._describe()
        self._thread = threading.Thread(target=self._run, name="autotune-descriptors", daemon=True)
        self._thread.start()

    @property
    def n_failed(self) -> int:
        """Returns the number of heaps that could not leave, including descriptors."""
        return self._outlet.n_failed

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection."""
        return self._outlet.not_connected

    def forget(self) -> None:
        """Drop the heaps in the memory of an engine that has ended."""
        self._made.clear()

    def close(self) -> None:
        """End the streams."""
        self._is_closed.set()
        self._thread.join()
        self._outlet.close()

    def _made_once(self, memory: np.ndarray, make: Callable[[np.ndarray], M]) -> M:
        """Returns the heaps that ``make`` made of this memory when it came first."""
        address = memory.ctypes.data
        if len(self._made) > MOST_PLACES:  # an engine has a few buffers
            self._made.clear()
        if address not in self._made:
            self._made[address] = make(memory)
        return self._made[address]

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._is_closed.wait(wait_s):
            self._describe()
            wait_s = self._every_s

    def _describe(self) -> None:
        heaps = [self._group.get_heap(descriptors="all", data="none") for _ in range(self._outlet.n_destinations)]
        self._outlet.send(heaps, 0.0, waits=False)
