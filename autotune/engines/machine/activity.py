"""What the device did when: spans of the work of streams, each between two timed events."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .backend import Backend, Event, Stream

MOST_SPANS = 1 << 14  # spans that are kept until they are asked for
COPY_IN, KERNELS, COPY_OUT = "copy in", "kernels", "copy out"  # kinds of spans


class Span(NamedTuple):
    """Work of one kind, in seconds since the engine was made."""

    kind: str
    begin: float
    end: float


class Activity:
    """Marks spans as work is given to streams, and tells of those that are over. One thread uses it."""

    def __init__(self, backend: Backend) -> None:
        self._zero = backend.stream().record(is_timed=True)
        self._marked: deque[tuple[str, Event, Event]] = deque(maxlen=MOST_SPANS)

    @contextmanager
    def span(self, kind: str, stream: Stream) -> Iterator[None]:
        """Marks what the block gives to ``stream``."""
        begin = stream.record(is_timed=True)
        yield
        self._marked.append((kind, begin, stream.record(is_timed=True)))

    def finished(self) -> list[Span]:
        """Returns the spans that are over since this was asked before, in the order in which work was given."""
        found = []
        while self._marked and self._marked[0][2].is_done():
            kind, begin, end = self._marked.popleft()
            found.append(Span(kind, begin.seconds_since(self._zero), end.seconds_since(self._zero)))
        return found


def covered(spans: list[Span]) -> float:
    """Returns the seconds that any of the spans covers."""
    total, reached = 0.0, float("-inf")
    for span in sorted(spans, key=lambda span: span.begin):
        total += max(0.0, span.end - max(span.begin, reached))
        reached = max(reached, span.end)
    return total
