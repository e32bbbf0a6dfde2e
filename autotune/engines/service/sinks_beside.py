"""Several sinks of one output, each with a thread, so that a slow one does not delay the others."""

import threading
from collections.abc import Callable, Mapping
from queue import Full, Queue
from typing import Any

import numpy as np

from ...core.errors import UsageError, one_line

N_WAITING = 4  # writes that may wait for a sink, in addition to the one under way
POLL_S = 0.1


class SinkBeside:
    """A sink with its own thread, which gets copies of the arrays.

    While ``n_waiting`` writes wait, a live stream's data are dropped and counted; otherwise ``write`` waits. When the
    sink fails, ``tell`` takes one line about it, and all later data are dropped and counted.

    Args:
        name: the line about a failure begins with it.
    """

    def __init__(
        self, sink: Any, name: str, is_live: bool, tell: Callable[[str], None], n_waiting: int = N_WAITING
    ) -> None:
        self._sink, self.name, self._is_live, self._tell = sink, name, is_live, tell
        self._waiting: Queue[tuple[Any, ...] | None] = Queue(n_waiting)
        self.n_dropped = 0  # heaps or dumps
        self.error: UsageError | None = None
        self._thread = threading.Thread(target=self._run, name=f"autotune-sink-{name}", daemon=True)
        self._thread.start()

    def write(self, *data: Any) -> None:
        """Write voltages or visibilities, as the sink takes them."""
        copies = tuple(each.copy() if isinstance(each, np.ndarray) else each for each in data)
        while self.error is None:
            try:
                self._waiting.put(copies, timeout=None if self._is_live else POLL_S, block=not self._is_live)
                return
            except Full:
                if self._is_live:
                    break
        self.n_dropped += _n_of(data)

    def close(self) -> None:
        """Close the sink after all waiting writes; ``tell`` takes a line about a failure."""
        self._waiting.put(None)
        self._thread.join()
        try:
            self._sink.close()
        except UsageError as error:
            self._failed(error)

    def _run(self) -> None:
        while (data := self._waiting.get()) is not None:
            if self.error is not None:
                self.n_dropped += _n_of(data)
                continue
            try:
                self._sink.write(*data)
            except UsageError as error:
                self.n_dropped += _n_of(data)
                self._failed(error)

    def _failed(self, error: UsageError) -> None:
        if self.error is None:
            self.error = error
            self._tell(one_line(f"{self.name} takes no more: {error}"))


class SinksBeside:
    """A sink that passes data on to several named sinks, each with its own thread.

    Raises:
        UsageError: ``write`` raises it when all of the sinks have failed.
    """

    def __init__(
        self, named: Mapping[str, Any], is_live: bool, tell: Callable[[str], None], n_waiting: int = N_WAITING
    ) -> None:
        self.sinks = [SinkBeside(sink, name, is_live, tell, n_waiting) for name, sink in named.items()]

    def write(self, *data: Any) -> None:
        """Write voltages or visibilities, as each sink takes them."""
        for sink in self.sinks:
            sink.write(*data)
        errors = [sink.error for sink in self.sinks if sink.error is not None]
        if len(errors) == len(self.sinks):
            raise errors[-1]

    def close(self) -> None:
        """Close all sinks."""
        for sink in self.sinks:
            sink.close()


def _n_of(data: tuple[Any, ...]) -> int:
    """Returns the number of heaps or dumps in one write."""
    return len(data[0]) if isinstance(data[0], np.ndarray) else 1
