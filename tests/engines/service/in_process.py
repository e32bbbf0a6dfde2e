"""A service that runs in a thread of this process, and is watched from another one."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from autotune.engines.service.run_service import ServiceState, run_service
from autotune.engines.service.served import Serving


class InProcess:
    """Runs engines of ``serving``. ``told``: the lines so far; ``status``: that of the service, when it has ended."""

    def __init__(self, serving: Serving, once: bool, status_s: float) -> None:
        self.state, self.told = ServiceState(), list[str]()
        self.status: int | None = None
        self._thread = threading.Thread(target=self._run, args=(serving, once, status_s), daemon=True)
        self._thread.start()

    def _run(self, serving: Serving, once: bool, status_s: float) -> None:
        self.status = run_service(serving, self.told.append, once=once, status_s=status_s, state=self.state)
        serving.close()

    def waits_until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end and self._thread.is_alive(), self.told
            time.sleep(0.01)

    def waits_for(self, text: str, n: int = 1) -> None:
        """Wait until the n-th line with a text."""
        self.waits_until(lambda: sum(text in line for line in list(self.told)) >= n)

    def received(self, name: str = "placed") -> int:
        """How many heaps are in a counter of the receivers so far."""
        count: int = self.state.snapshot()["received"].get(name, 0)
        return count

    def made(self, output: int = 0) -> dict[str, Any]:
        """What the engines so far have counted of an output."""
        counts: dict[str, Any] = self.state.snapshot()["made"][output]
        return counts

    def ends(self, seconds: float = 30) -> int | None:
        """The status with which it ends by itself."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), self.told
        return self.status

    def stops(self) -> int | None:
        """The status with which it ends when it is asked to."""
        self.state.stop()
        return self.ends()


@contextmanager
def running(serving: Serving, once: bool = False, status_s: float = 100.0) -> Iterator[InProcess]:
    """A service that receives, and is stopped at the end."""
    service = InProcess(serving, once, status_s)
    try:
        service.waits_for("heaps are received at")
        yield service
    finally:
        service.stops()
