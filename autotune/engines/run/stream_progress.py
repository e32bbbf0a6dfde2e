"""Reports an engine's progress now and then."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..machine.activity import KERNELS, Activity, Span, covered
from .queues import Buckets

REPORT_S = 0.5  # seconds between two lines


class StreamProgress:
    """Passes a line to ``report`` now and then: the engine's counts, the device's idle share, and the queues.

    Args:
        queues: the buckets between two threads, by the name of their content.
        trace: takes the spans of the device's work when they are over.
    """

    def __init__(
        self,
        activity: Activity,
        queues: Mapping[str, Buckets[Any]],
        report: Callable[[str], None],
        trace: Callable[[list[Span]], None] | None,
    ) -> None:
        self._activity, self._queues, self._report, self._trace = activity, queues, report, trace
        self._last = self._began = time.monotonic()
        self._busy_s = 0.0  # seconds in which the device ran kernels

    def tick(self, counted: Callable[[], str]) -> None:
        """Report, if REPORT_S has passed since the last line."""
        now = time.monotonic()
        if now - self._last < REPORT_S:
            return
        busy_s = self._look()
        idle = max(0.0, 1 - busy_s / (now - self._last))
        depths = " ".join(f"{name} {buckets.depth()}" for name, buckets in self._queues.items())
        self._report(f"{counted()}, kernels idle {idle:.0%}, queues {depths}")
        self._last = now

    def idle_share(self) -> float:
        """Returns the share of the time since the engine was made in which the device ran no kernel."""
        self._look()
        return max(0.0, 1 - self._busy_s / (time.monotonic() - self._began))

    def _look(self) -> float:
        spans = self._activity.finished()
        if self._trace is not None:
            self._trace(spans)
        busy_s = covered([span for span in spans if span.kind == KERNELS])
        self._busy_s += busy_s
        return busy_s
