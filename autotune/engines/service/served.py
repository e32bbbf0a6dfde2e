"""An engine that is served: what runs it, what it takes from and gives to, and what it has counted."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from ...core.errors import UsageError
from ..network.received import Received
from ..run.counters import si

Counts = dict[str, Any]  # by name: integers, text, or lists and mappings of such


class RunsOnce(Protocol):
    """An engine, which runs once."""

    def run(self) -> Any: ...

    def stop(self) -> None: ...

    @property
    def is_stopped(self) -> bool: ...


@dataclass
class Served:
    """One engine with its source and the sinks that are its own.

    ``closing``: closes what is its own. ``made``: what the engine has counted of what it made, by output.
    """

    engine: RunsOnce
    source: Received
    made: Callable[[], list[Counts]]
    closing: ExitStack = field(default_factory=ExitStack)

    def run(self) -> None:
        """Run the engine to its end. Raises what it raises."""
        try:
            self.engine.run()
        finally:
            with suppress(UsageError):  # of a file that is full: its error was raised, or told
                self.closing.close()

    def received(self) -> Counts:
        """Returns what became of all heaps that came."""
        return {} if self.source.receiver is None else dict(self.source.receiver.counts)

    @property
    def newest_time(self) -> int | None:
        """Returns the time of the newest heap, in samples; None: there was none yet."""
        return None if self.source.receiver is None else self.source.receiver.newest_time

    @property
    def unbelieved(self) -> list[tuple[int, int]]:
        """Returns (sender, time in samples) of heaps that came last of times which are not believed."""
        return [] if self.source.receiver is None else self.source.receiver.unbelieved


class Serving(Protocol):
    """What makes engines again and again, each of which goes on with the same streams."""

    sample_rate_hz: float
    sync_time_unix: Fraction | None
    listens_at: str  # where heaps are received, for people
    is_file: bool  # whether that is a file, which has an end

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses that there is no TCP connection to."""

    def served(self, near: int, number: int) -> Served:
        """Returns a new engine, the ``number``-th from 1 on, whose stream has times near to ``near``, in samples.

        Raises:
            UsageError: when nothing can be received.
        """

    def close(self) -> None:
        """End the streams that are sent."""


def clock_time(serving: Serving) -> int:
    """Returns the time of now in samples by this machine's clock; 0 where nobody says when the stream's zero was."""
    if serving.sync_time_unix is None:
        return 0
    return int((Fraction(time.time()) - serving.sync_time_unix) * Fraction(serving.sample_rate_hz))


def added(before: Counts, now: Counts) -> Counts:
    """Returns counts of several engines: integers are added up, all else is that of the last one."""
    both = dict(before)
    for name, value in now.items():
        both[name] = both.get(name, 0) + value if isinstance(value, int) else value
    return both


def counts_text(received: Mapping[str, int], unbelieved: Sequence[tuple[int, int]] = ()) -> str:
    """Returns what a receiver has counted, for people: what is as it should be, and all else that is not 0.

    ``unbelieved``: (sender, time in samples) of the last heaps that have jumped.
    """
    usual = {"heaps", "placed", "packets", "stops", "no_data"}
    parts = [f"{received.get('placed', 0)} heaps in"]
    last = "; ".join(f"sender {sender} at sample {time}" for sender, time in unbelieved)
    more = {"jumped": f" (last: {last})"} if last else {}
    parts += [
        f"{n} {name.replace('_', ' ')}{more.get(name, '')}" for name, n in received.items() if n and name not in usual
    ]
    return ", ".join(parts)


def made_text(made: Sequence[Counts]) -> str:
    """Returns what an engine has made, for people, by output."""
    parts = []
    for counts in made:
        kind = "dumps" if "dumps_out" in counts else "heaps"
        usual = f"{counts[f'{kind}_out']} {kind} out"
        rest = [
            f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if isinstance(n, int) and n and name in TOLD
        ]
        rest += [f"{counts['sink_error']}"] if counts.get("sink_error") else []
        parts.append(", ".join([usual, *rest]))
    return "; ".join(parts)


TOLD = (
    *("heaps_missing", "packets_missing", "chunks_dropped", "heaps_dropped", "spectra_beyond", "heaps_late"),
    *("dumps_empty", "dumps_dropped", "dumps_skipped", "heaps_failed"),
)


def lag_text(serving: Serving, newest: int | None) -> str:
    """Returns how far the newest sample lies behind the clock; empty where that is not known."""
    if newest is None or serving.sync_time_unix is None:
        return ""
    lag = (clock_time(serving) - newest) / serving.sample_rate_hz
    return f"{si(abs(lag))}s {'behind' if lag >= 0 else 'ahead of'} the clock"
