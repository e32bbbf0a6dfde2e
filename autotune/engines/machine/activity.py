"""The times of the device's work: spans of streams, each between two timed events."""

from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from .backend import Backend, Event, Stream

MOST_SPANS = 1 << 14  # the most spans that wait for ``finished``
COPY_IN, KERNELS, COPY_OUT = SPANS = "copy in", "kernels", "copy out"  # kinds of spans

Marked = tuple[str, Event, Event]  # kind, begin and end of some work


class Span(NamedTuple):
    """Work of one kind, in seconds since the engine was made."""

    kind: str
    begin: float
    end: float


class MarkedWork:
    """Marks the work that a block gives to a stream. ``end`` is the event after it, for which others may wait, too.

    Args:
        marked: takes the marked work at the end of the block; None if nobody needs its times.
    """

    begin: Event
    end: Event

    def __init__(self, kind: str, stream: Stream, marked: deque[Marked] | None) -> None:
        self.kind, self._stream, self._marked = kind, stream, marked

    def __enter__(self) -> "MarkedWork":
        if self._marked is not None:
            self.begin = self._stream.record(is_timed=True)
        return self

    def __exit__(self, error: object, *others: object) -> None:
        if error is not None:
            return
        self.end = self._stream.record(is_timed=self._marked is not None)
        if self._marked is not None:
            self._marked.append((self.kind, self.begin, self.end))


class Activity:
    """Marks spans while work is given to streams, and returns those that are over. Only one thread uses it.

    Args:
        kinds: the kinds of spans to time.
    """

    def __init__(self, backend: Backend, kinds: Collection[str] = SPANS) -> None:
        self._kinds = kinds
        self._zero = backend.stream().record(is_timed=True)
        self._marked: deque[Marked] = deque(maxlen=MOST_SPANS)

    def span(self, kind: str, stream: Stream) -> MarkedWork:
        """Returns a context manager that marks the work its block gives to ``stream``."""
        return MarkedWork(kind, stream, self._marked if kind in self._kinds else None)

    def finished(self) -> list[Span]:
        """Returns the spans that are over since the last call, in the order in which the work was given."""
        spans = []
        while self._marked and self._marked[0][2].is_done():
            kind, begin, end = self._marked.popleft()
            spans.append(Span(kind, begin.seconds_since(self._zero), end.seconds_since(self._zero)))
        return spans


def covered(spans: list[Span]) -> float:
    """Returns the seconds that are covered by at least one span."""
    total, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.begin):
        total += max(0.0, span.end - max(span.begin, reached))
        reached = max(reached, span.end)
    return total
