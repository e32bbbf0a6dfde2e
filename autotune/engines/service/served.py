"""An engine of a service, with its source, its sinks and its counts."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol
from weakref import ref

from ...core.errors import UsageError
from ..files.reading import Tell
from ..jobs.running import Running
from ..network.dump_outlet import DumpOutlet
from ..network.outlet import PATIENCE_S
from ..network.received import CONFIRM, Received
from ..network.receiver import Listening
from ..network.senders import Sender
from ..network.voltage_outlet import VoltageOutlet
from ..run.counters import si
from ..run.lifecycle import Engine
from ..streams.samples import SampleInfo
from .new_files import NewFile, numbered
from .sinks_beside import NotClosed, SinksBeside
from .stream_places import LONG_PATIENCE_S, SendingPlace

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

    def senders(self) -> list[Sender]:
        """Returns the account of each sender, and at last that of heaps without a known one; none before it begins."""
        return self.source.senders()

    @property
    def newest_time(self) -> int | None:
        """Returns the time of the newest heap, in samples; None before the first one."""
        return None if self.source.receiver is None else self.source.receiver.newest_time

    @property
    def unbelieved(self) -> list[tuple[int, int]]:
        """Returns (sender, time in samples) of the latest heaps whose times are too far off to be believed."""
        return [] if self.source.receiver is None else self.source.receiver.unbelieved


class Serving:
    """A maker of engines, which continue the same streams one after the other.

    Each kind says how it makes a source, an engine, an outlet and a file, and what it counts.

    Args:
        samples: the header of an antenna's samples.
        destinations: the destinations of each output of an engine.
        running: the device and its kernels.
        tell: takes a line about a sink that fails.

    Raises:
        UsageError: when nothing can be sent to an address.
    """

    counted: Sequence[str]  # the names of an output's counts
    dropped: str  # the name of the count of what a sink did not take

    def __init__(
        self,
        places: Listening,
        samples: SampleInfo,
        destinations: Sequence[Sequence[SendingPlace]],
        running: Running,
        tell: Tell,
    ) -> None:
        self._places, self._destinations, self._running, self._tell = places, destinations, running, tell
        self._now: Callable[[], RunsOnce | None] = lambda: None  # the running engine, by a weak reference
        self.sample_rate_hz, self.sync_time_unix = samples.sample_rate_hz, samples.sync_time_unix
        self.listens_at, self.is_file = str(places), places.is_file  # files of heaps have an end
        self._kernels = running.kernels()
        self._outlets = [
            {", ".join(map(str, place.endpoints)): self._outlet(output, place) for place in some if place.endpoints}
            for output, some in enumerate(destinations)
        ]

    def served(self, near: int, number: int) -> Served:
        """Returns a new engine, the ``number``-th from 1 on. Its stream has times near ``near``, in samples.

        Raises:
            UsageError: when nothing can be received.
        """
        closing, places = ExitStack(), self._places
        confirm = CONFIRM if places.is_live else 1
        source = self._source(listening=places, is_live=places.is_live, near=near, confirm=confirm)
        try:
            for outlet in self._all_outlets():
                outlet.forget()
            sinks = [self._sink(output, number, closing) for output in range(len(self._destinations))]
            engine = self._engine(source, sinks)
        except BaseException:
            closing.close()
            source.close()
            raise
        failed_before = self._n_failed()

        def counts() -> list[Counts]:
            failed = [now - before for now, before in zip(self._n_failed(), failed_before, strict=True)]
            return list(map(self._counts, range(len(sinks)), engine.all_counters, sinks, failed))

        self._now = ref(engine)
        return Served(engine, source, counts, closing)

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection."""
        return [each for outlet in self._all_outlets() for each in outlet.not_connected]

    def close(self) -> None:
        """End the streams that the engines send."""
        for outlet in self._all_outlets():
            outlet.close()

    def _source(self, **receiving: Any) -> Received:
        raise NotImplementedError

    def _engine(self, source: Any, sinks: Sequence[Any]) -> Engine[Any]:
        raise NotImplementedError

    def _outlet(self, output: int, place: SendingPlace) -> VoltageOutlet | DumpOutlet:
        raise NotImplementedError

    def _file(self, output: int, path: Path) -> Any:
        """Returns a new file for an output."""
        raise NotImplementedError

    def _sending(self, place: SendingPlace) -> dict[str, Any]:
        """Returns the options of an outlet."""
        return {
            "is_paced": place.paced and self._places.is_live,
            "interface": place.interface,
            "cores": place.cores,
            "patience_s": PATIENCE_S if self._places.is_live else LONG_PATIENCE_S,
            "is_asked": lambda: (engine := self._now()) is not None and engine.is_stopped,
        }

    def _sink(self, output: int, number: int, closing: ExitStack) -> Any:
        """Returns the sink of an output. ``closing`` closes what ends with the engine."""
        named: dict[str, Any] = {name: NotClosed(outlet) for name, outlet in self._outlets[output].items()}
        with ExitStack() as stack:
            for file in (place.file for place in self._destinations[output] if place.file is not None):
                path = numbered(file, number, self._tell)
                named[str(path)] = NewFile(self._file(output, path), path)
                stack.callback(named[str(path)].close)
            stack.pop_all()
        (sink, *more) = named.values()
        if more:
            sink = SinksBeside(named, self._places.is_live, self._tell)
        closing.callback(sink.close)
        return sink

    def _all_outlets(self) -> list[VoltageOutlet | DumpOutlet]:
        return [outlet for some in self._outlets for outlet in some.values()]

    def _n_failed(self) -> list[int]:
        return [sum(outlet.n_failed for outlet in some.values()) for some in self._outlets]

    def _counts(self, output: int, counters: Any, sink: Any, n_failed: int) -> Counts:
        with counters.lock:
            counts: Counts = {name: getattr(counters, name) for name in self.counted}
            counts |= self._more_counts(output, counters)
        counts[self.dropped] += sum(each.n_dropped for each in sink.sinks) if isinstance(sink, SinksBeside) else 0
        return counts | {"heaps_failed": n_failed}

    def _more_counts(self, output: int, counters: Any) -> Counts:
        return {}


def clock_time(serving: Serving) -> int:
    """Returns the present time in samples by this machine's clock; 0 if the stream's zero is not known."""
    if serving.sync_time_unix is None:
        return 0
    return int((Fraction(time.time()) - serving.sync_time_unix) * Fraction(serving.sample_rate_hz))


def clock_lag_s(serving: Serving, served: Served) -> float | None:
    """Returns how far the newest heap's time was behind the clock when it came, in s; None if it is not known."""
    quiet = [each.quiet_s for each in served.senders()[:-1] if each.quiet_s is not None]
    if served.newest_time is None or serving.sync_time_unix is None or not quiet:
        return None
    return (clock_time(serving) - served.newest_time) / serving.sample_rate_hz - min(quiet)


def added(before: Counts, now: Counts) -> Counts:
    """Returns the counts of two engines together: sums of integers, and other values from the later engine."""
    both = dict(before)
    for name, value in now.items():
        if isinstance(value, dict):
            both[name] = added(both.get(name, {}), value)
        else:
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
