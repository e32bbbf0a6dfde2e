"""Several sinks of one output, none of which holds up the others."""

import threading
from collections.abc import Callable, Mapping
from queue import Full, Queue
from typing import Any

import numpy as np

from ...core.errors import UsageError, one_line

N_WAITING = 4  # that a sink may be behind, what it writes not among them
POLL_S = 0.1


class SinkBeside:
    """A sink with a thread of its own, which copies what it takes.

    Where it is live, what comes while N_WAITING wait is dropped and counted; otherwise ``write`` waits. When the sink
    fails, that is told once, and all that comes later is dropped and counted.

    Args:
        name: what the line about its failure begins with.
    """

    def __init__(self, sink: Any, name: str, is_live: bool, tell: Callable[[str], None]) -> None:
        self._sink, self.name, self._is_live, self._tell = sink, name, is_live, tell
        self._waiting: Queue[tuple[Any, ...] | None] = Queue(N_WAITING)
        self.n_dropped = 0  # heaps or dumps
        self.error: UsageError | None = None
        self._thread = threading.Thread(target=self._run, name=f"autotune-sink-{name}", daemon=True)
        self._thread.start()

    def write(self, *made: Any) -> None:
        """Take voltages or visibilities, as the sink does."""
        copies = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in made)
        while self.error is None:
            try:
                self._waiting.put(copies, timeout=None if self._is_live else POLL_S, block=not self._is_live)
                return
            except Full:
                if self._is_live:
                    break
        self.n_dropped += _n_of(made)

    def close(self) -> None:
        """Close the sink when it has written all that it took; a failure is told."""
        self._waiting.put(None)
        self._thread.join()
        try:
            self._sink.close()
        except UsageError as error:
            self._failed(error)

    def _run(self) -> None:
        while (made := self._waiting.get()) is not None:
            if self.error is not None:
                self.n_dropped += _n_of(made)
                continue
            try:
                self._sink.write(*made)
            except UsageError as error:
                self.n_dropped += _n_of(made)
                self._failed(error)

    def _failed(self, error: UsageError) -> None:
        if self.error is None:
            self.error = error
            self._tell(one_line(f"{self.name} takes no more: {error}"))


class SinksBeside:
    """A sink that gives what it takes to several ones, by their names, each beside the others.

    Raises:
        UsageError: by ``write``, when the last of them has failed.
    """

    def __init__(self, named: Mapping[str, Any], is_live: bool, tell: Callable[[str], None]) -> None:
        self.sinks = [SinkBeside(sink, name, is_live, tell) for name, sink in named.items()]

    def write(self, *made: Any) -> None:
        """Take voltages or visibilities, as each sink does."""
        for sink in self.sinks:
            sink.write(*made)
        errors = [sink.error for sink in self.sinks if sink.error is not None]
        if len(errors) == len(self.sinks):
            raise errors[-1]

    def close(self) -> None:
        """Close all of them."""
        for sink in self.sinks:
            sink.close()


class NotClosed:
    """A sink that stays open when what uses it is closed."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, *made: Any) -> None:
        """Take voltages or visibilities."""
        self._sink.write(*made)

    def close(self) -> None:
        """Do nothing."""


def _n_of(made: tuple[Any, ...]) -> int:
    """Returns how many heaps, or dumps, are written at once."""
    return len(made[0]) if isinstance(made[0], np.ndarray) else 1
