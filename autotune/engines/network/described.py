"""What a stream's heaps are, in heaps of descriptors that are sent now and then: receivers may begin at any time."""

import threading

import spead2.send

from .outlet import Outlet

EVERY_S = 5.0


class Descriptors:
    """Sends descriptors at once, and then every so often, from a thread of its own.

    Args:
        group: items without values, which describe what heaps have.
        first_s: seconds until the second time.
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
        """Send no more."""
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
