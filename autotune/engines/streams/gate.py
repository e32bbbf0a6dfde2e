"""Gates before sinks: an output starts and stops at stated times, while its engine runs on."""

from math import inf

import numpy as np

from .visibilities import VisibilitySink
from .voltages import VoltageSink


class Gate:
    """Lets pass what begins in a span of time, which other threads may change. ``n_stopped``: what did not pass.

    Args:
        start: a time in samples, from which on it is open; None: it is shut until it is opened.
        end: a time, from which on it is shut; None: it stays open.
    """

    def __init__(self, start: int | None = None, end: int | None = None) -> None:
        self._span: tuple[float, float] = (inf if start is None else start), (inf if end is None else end)
        self.n_stopped = 0

    def open(self, start: int = 0, end: int | None = None) -> None:
        """Let pass what begins from ``start`` on, and before ``end``."""
        self._span = start, (inf if end is None else end)

    def shut(self, end: int = 0) -> None:
        """Let nothing pass that begins at ``end`` or later."""
        self._span = self._span[0], end

    def passes(self, times: np.ndarray) -> np.ndarray:
        """Returns which of these times pass, bool [n], and counts the others."""
        start, end = self._span
        passing = (times >= start) & (times < end)
        self.n_stopped += int(np.count_nonzero(~passing))
        return np.asarray(passing)


class GatedVoltages(Gate):
    """A VoltageSink behind a gate."""

    def __init__(self, sink: VoltageSink, start: int | None = None, end: int | None = None) -> None:
        super().__init__(start, end)
        self._sink = sink

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Take heaps; see ``voltages.VoltageSink``."""
        passing = np.flatnonzero(self.passes(timestamps))
        if len(passing):  # in the order of time, so that they lie together: views, no copy
            some = slice(int(passing[0]), int(passing[-1]) + 1)
            self._sink.write(timestamps[some], voltages[some], saturated[some], present[some])

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()


class GatedVisibilities(Gate):
    """A VisibilitySink behind a gate; a dump is of the time at which it begins."""

    def __init__(self, sink: VisibilitySink, start: int | None = None, end: int | None = None) -> None:
        super().__init__(start, end)
        self._sink = sink

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Take a dump; see ``visibilities.VisibilitySink``."""
        if self.passes(np.array([timestamp]))[0]:
            self._sink.write(timestamp, visibilities, weights, saturated)

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()
