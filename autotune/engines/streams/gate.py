"""Gates in front of sinks: an output starts and stops at stated times while its engine goes on."""

from math import inf
from typing import Any

import numpy as np


class Gate:
    """Passes data that begin in a span of time, which other threads may change. ``n_stopped`` counts the others.

    Args:
        start: the time in samples from which on the gate is open; None keeps it shut until ``open`` is called.
        end: the time from which on the gate is shut; None keeps it open.
    """

    def __init__(self, start: int | None = None, end: int | None = None) -> None:
        self._span: tuple[float, float] = (inf if start is None else start), (inf if end is None else end)
        self.n_stopped = 0

    def open(self, start: int = 0, end: int | None = None) -> None:
        """Pass data that begin at ``start`` or later, and before ``end``."""
        self._span = start, (inf if end is None else end)

    def shut(self, end: int = 0) -> None:
        """Stop data that begin at ``end`` or later."""
        self._span = self._span[0], end

    def passes(self, times: np.ndarray) -> np.ndarray:
        """Returns whether each of these times passes, bool [n]. Counts the others."""
        start, end = self._span
        passing = (times >= start) & (times < end)
        self.n_stopped += int(np.count_nonzero(~passing))
        return np.asarray(passing)


class GatedSink(Gate):
    """A gate in front of a sink."""

    def __init__(self, sink: Any, start: int | None = None, end: int | None = None) -> None:
        super().__init__(start, end)
        self._sink = sink

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()


class GatedVoltages(GatedSink):
    """A VoltageSink behind a gate."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Take heaps; see ``voltages.VoltageSink``."""
        passing = np.flatnonzero(self.passes(timestamps))
        if len(passing):  # times rise, so passing heaps are neighbours, and slices need no copy
            some = slice(int(passing[0]), int(passing[-1]) + 1)
            self._sink.write(timestamps[some], voltages[some], saturated[some], present[some])


class GatedVisibilities(GatedSink):
    """A VisibilitySink behind a gate. A dump's time is its begin."""

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Take a dump; see ``visibilities.VisibilitySink``."""
        if self.passes(np.array([timestamp]))[0]:
            self._sink.write(timestamp, visibilities, weights, saturated)
