"""Heaps of descriptors. They describe a stream's heaps, again and again, since receivers may start at any time."""

import threading

import spead2.send

from .outlet import Outlet

EVERY_S = 5.0


class Descriptors:
    """Sends descriptors at once and then repeatedly, from a thread.

    Args:
        group: items without values, which describe the items of heaps.
        every_s: seconds from one time to the next.
        first_s: seconds until the second time; None takes ``every_s``.
    """

    def __init__(
        self, outlet: Outlet, group: spead2.send.ItemGroup, every_s: float = EVERY_S, first_s: float | None = None
    ) -> None:
        self._outlet, self._group = outlet, group
        self._every_s, self._first_s = every_s, every_s if first_s is None else first_s
        self._is_closed = threading.Event()
        self._send()
        self._thread = threading.Thread(target=self._run, name="autotune-descriptors", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop sending."""
        self._is_closed.set()
        self._thread.join()

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._is_closed.wait(wait_s):
            self._send()
            wait_s = self._every_s

    def _send(self) -> None:
        heaps = [self._group.get_heap(descriptors="all", data="none") for _ in range(self._outlet.n_destinations)]
        self._outlet.send(heaps, 0.0, waits=False)
