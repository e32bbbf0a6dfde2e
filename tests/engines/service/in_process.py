"""A service that runs in a thread of this process, and is watched from another one."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from autotune.engines.service.run_service import ServiceState, run_service
from autotune.engines.service.served import Serving

from ...waiting import wait_until


def untimed(line: str) -> str:
    """A line without the time and the level, which each has."""
    match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (?:INFO|WARNING|ERROR) (.*)", line)
    assert match is not None, line
    return match[1]


class InProcess:
    """Runs engines of ``serving``. ``told``: the lines so far; ``status``: that of the service, when it has ended."""

    def __init__(self, serving: Serving, once: bool, status_s: float) -> None:
        self.state, self.told = ServiceState(), list[str]()
        self.status: int | None = None
        self._thread = threading.Thread(target=self._run, args=(serving, once, status_s), daemon=True)
        self._thread.start()

    def _run(self, serving: Serving, once: bool, status_s: float) -> None:
        self.status = run_service(
            serving, lambda line: self.told.append(untimed(line)), once=once, status_s=status_s, state=self.state
        )
        serving.close()

    def waits_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, which comes to hold while it runs."""
        wait_until(lambda: holds() or not self._thread.is_alive(), lambda: self.told)
        assert holds(), self.told

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

    def ends(self) -> int | None:
        """The status with which it ends by itself."""
        wait_until(lambda: not self._thread.is_alive(), lambda: self.told)
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
