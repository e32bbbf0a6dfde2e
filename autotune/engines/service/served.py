"""An engine of a service, with its source, its sinks and its counts."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from ...core.errors import UsageError
from ..network.received import Received
from ..run.counters import si

Counts = dict[str, Any]  # the values, by name, are integers, text, or lists and mappings of them


class RunsOnce(Protocol):
    """An engine, which can run once."""

    def run(self) -> Any: ...

    def stop(self) -> None: ...

    @property
    def is_stopped(self) -> bool: ...


@dataclass
class Served:
    """One engine with its source and its own sinks.

    ``closing`` closes these sinks. ``made`` returns the engine's counts for each output.
    """

    engine: RunsOnce
    source: Received
    made: Callable[[], list[Counts]]
    closing: ExitStack = field(default_factory=ExitStack)

    def run(self) -> None:
        """Run the engine to its end. Raises what the engine raises."""
        try:
            self.engine.run()
        finally:
            with suppress(UsageError):  # a full file fails again here; its error was raised or reported before
                self.closing.close()

    def received(self) -> Counts:
        """Returns the receiver's counts of all heaps that came."""
        return {} if self.source.receiver is None else dict(self.source.receiver.counts)

    @property
    def newest_time(self) -> int | None:
        """Returns the time of the newest heap, in samples; None before the first one."""
        return None if self.source.receiver is None else self.source.receiver.newest_time

    @property
    def unbelieved(self) -> list[tuple[int, int]]:
        """Returns (sender, time in samples) of the latest heaps whose times are too far off to be believed."""
        return [] if self.source.receiver is None else self.source.receiver.unbelieved


class Serving(Protocol):
    """A maker of engines, which continue the same streams one after the other."""

    sample_rate_hz: float
    sync_time_unix: Fraction | None
    listens_at: str  # text that names the places where heaps are received
    is_file: bool  # whether heaps come from files, which have an end

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection."""

    def served(self, near: int, number: int) -> Served:
        """Returns a new engine, the ``number``-th from 1 on. Its stream has times near ``near``, in samples.

        Raises:
            UsageError: when nothing can be received.
        """

    def close(self) -> None:
        """End the streams that the engines send."""


def clock_time(serving: Serving) -> int:
    """Returns the present time in samples by this machine's clock; 0 if the stream's zero is not known."""
    if serving.sync_time_unix is None:
        return 0
    return int((Fraction(time.time()) - serving.sync_time_unix) * Fraction(serving.sample_rate_hz))


def added(before: Counts, now: Counts) -> Counts:
    """Returns the counts of two engines together: sums of integers, and other values from the later engine."""
    both = dict(before)
    for name, value in now.items():
        both[name] = both.get(name, 0) + value if isinstance(value, int) else value
    return both


def counts_text(received: Mapping[str, int], unbelieved: Sequence[tuple[int, int]] = ()) -> str:
    """Returns a receiver's counts as text: the placed heaps, and each other count that is not 0 and not usual.

    ``unbelieved``: (sender, time in samples) of the latest heaps that have jumped.
    """
    usual = {"heaps", "placed", "packets", "stops", "no_data"}
    parts = [f"{received.get('placed', 0)} heaps in"]
    last = "; ".join(f"sender {sender} at sample {time}" for sender, time in unbelieved)
    more = {"jumped": f" (last: {last})"} if last else {}
    parts += [
        f"{n} {name.replace('_', ' ')}{more.get(name, '')}" for name, n in received.items() if n and name not in usual
    ]
    return ", ".join(parts)


def made_text(outputs: Sequence[Counts]) -> str:
    """Returns an engine's counts for each output as text."""
    parts = []
    for counts in outputs:
        kind = "dumps" if "dumps_out" in counts else "heaps"
        usual = f"{counts[f'{kind}_out']} {kind} out"
        rest = [
            f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if isinstance(n, int) and n and name in SHOWN
        ]
        rest += [f"{counts['sink_error']}"] if counts.get("sink_error") else []
        parts.append(", ".join([usual, *rest]))
    return "; ".join(parts)


SHOWN = (
    *("heaps_missing", "packets_missing", "chunks_dropped", "heaps_dropped", "spectra_beyond", "heaps_late"),
    *("dumps_empty", "dumps_dropped", "dumps_skipped", "heaps_failed"),
)


def lag_text(serving: Serving, newest: int | None) -> str:
    """Returns the newest sample's distance from the clock as text; empty if it is not known."""
    if newest is None or serving.sync_time_unix is None:
        return ""
    lag = (clock_time(serving) - newest) / serving.sample_rate_hz
    return f"{si(abs(lag))}s {'behind' if lag >= 0 else 'ahead of'} the clock"
