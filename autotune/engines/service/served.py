"""An engine of a service, with its source, its sinks and its counts."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol
from weakref import ref

from ...core.errors import UsageError
from ..files.reading import Tell
from ..jobs.running import Running
from ..network.dump_outlet import DumpOutlet
from ..network.outlet import PATIENCE_S
from ..network.received import CONFIRM, Received
from ..network.receiver import JumpedError, Listening
from ..network.senders import Sender
from ..network.voltage_outlet import VoltageOutlet
from ..run.counters import si
from ..run.lent_chunks import N_CHUNKS
from ..run.lifecycle import Engine
from ..streams.samples import SampleInfo
from ..streams.times import exact_time, time_text
from .kept_file import KeptFile
from .new_files import NewFile, numbered
from .sinks_beside import N_WAITING, SinksBeside
from .stream_places import LONG_PATIENCE_S, SendingPlace

LEVELS = INFO, WARNING, ERROR = "INFO", "WARNING", "ERROR"
FAR_S = 10.0  # a live stream's time may differ so much from the clock
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
        kept: the file of what outlives the engines.
    """

    counted: Sequence[str]  # the names of an output's counts
    dropped: str  # the name of the count of what a sink did not take
    _n_waiting = N_WAITING  # writes that may wait for each of several sinks

    def __init__(
        self,
        places: Listening,
        samples: SampleInfo,
        destinations: Sequence[Sequence[SendingPlace]],
        running: Running,
        tell: Tell,
        kept: KeptFile,
    ) -> None:
        self._heard = 0, 0.0  # the newest time of the engine before, and when it came
        self._kept, self.offset = kept, 0  # samples from multiples of a packet's to the stream's times
        self._places, self._destinations, self._running = places, destinations, running
        self._tell, self._fail = at_level(tell), at_level(tell, ERROR)
        self._now: Callable[[], RunsOnce | None] = lambda: None  # the running engine, by a weak reference
        self.sample_rate_hz, self.sync_time_unix = samples.sample_rate_hz, samples.sync_time_unix
        self.listens_at, self.is_file = str(places), places.is_file  # files of heaps have an end
        self._kernels = running.kernels()
        self._outlets: list[dict[str, VoltageOutlet | DumpOutlet]] = []

    def open(self) -> None:
        """Open what sends to the network. Raises UsageError when nothing can be sent to an address."""
        self._outlets = [
            {", ".join(map(str, place.endpoints)): self._outlet(output, place) for place in some if place.endpoints}
            for output, some in enumerate(self._destinations)
        ]

    def check(self) -> list[str]:
        """Returns lines about ports, memory, latency, tolerance and what a chunk makes. Nothing is opened."""
        shape, seconds, n_made, n_bytes = self._sizes()
        n, chunk = self._source().n_kept(shape), prod(shape)
        places = (place for some in self._destinations for place in some)
        to = ", ".join(str(each) for place in places for each in (*place.endpoints, place.file) if each)
        late_s = (n - (len(self._places.members) > 1) - 1) * seconds
        return [
            f"ports: listens at {self.listens_at}; writes to {to}",
            f"memory: {si((N_CHUNKS + n) * chunk + n_bytes)}B of the host; {n} chunks of {si(chunk)}B fill at once",
            f"latency: {si(n * seconds)}s until a chunk is passed on",
            f"tolerance: a heap may come {si(late_s)}s later than others",
            f"{self.dropped.partition('_')[0]} a chunk, of {si(seconds)}s: {', '.join(f'{each:g}' for each in n_made)}",
        ]

    def served(self, near: int, number: int) -> Served:
        """Returns a new engine, the ``number``-th from 1 on. Its stream has times near ``near``, in samples.

        Raises:
            UsageError: when nothing can be received.
        """
        closing = ExitStack()
        source = self._source(near=near, confirm=CONFIRM if self._places.is_live else 1)
        source.looks.append(lambda array, answer: self._look(source))
        closing.callback(self._listen, source)
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

    def follow(self, jump: JumpedError) -> None:
        """Take it that a live stream goes on where it has jumped to, since its digitiser was synchronised anew.

        What holds from a time on holds from the same moment on. Shorter steps of a clock are taken as such.
        """
        later_s, self._heard = jump.seconds - jump.samples / self.sample_rate_hz, (0, 0.0)
        if abs(later_s) <= FAR_S or not self._places.is_live:
            return
        self._shift(-round(later_s * self.sample_rate_hz))
        if self.sync_time_unix is not None:
            self.sync_time_unix = Fraction(round(1000 * (self.sync_time_unix + Fraction(later_s))), 1000)
            since = f"sync_time_unix is {time_text(self.sync_time_unix)} from here on, by this machine's clock"
            self._tell(f"the digitiser was synchronised anew: {since}; the file may say it better")
        self._keep()

    def _listen(self, source: Received) -> None:
        if source.receiver is not None and source.receiver.newest_time is not None:
            self._heard = source.receiver.newest_time, time.monotonic() - source.receiver.quiet_s

    def _look(self, source: Received) -> None:
        """Raises JumpedError when the stream of an engine has another zero than that of the engine before."""
        (before, then), receiver = self._heard, source.receiver
        assert receiver is not None and receiver.newest_time is not None
        self._heard = 0, 0.0
        if receiver.offset != self.offset:
            self.offset = receiver.offset
            self._tell(f"times are {self.offset} samples after multiples of a packet's, and are taken as they are")
        samples, seconds = receiver.newest_time - before, time.monotonic() - receiver.quiet_s - then
        if then and source.is_live and abs(seconds - samples / self.sample_rate_hz) > FAR_S:
            raise JumpedError(receiver.newest_time, samples, seconds)

    def _now_of(self, samples: SampleInfo) -> SampleInfo:
        """Returns a header with the time at which the stream's time is 0 now."""
        return replace(samples, sync_time_unix=self.sync_time_unix)

    def _shift(self, samples: int) -> None:
        """Move all that begins at a time so many samples."""

    def _keep(self) -> None:
        """Write what outlives the engines."""
        self._kept.write(self._content())

    def _content(self) -> Counts:
        return {"sync_time_unix": self.sync_time_unix and time_text(self.sync_time_unix)}

    def _restore(self, content: Counts) -> None:
        if content["sync_time_unix"] is not None:
            self.sync_time_unix = exact_time(content["sync_time_unix"])

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection."""
        return [each for outlet in self._all_outlets() for each in outlet.not_connected]

    def close(self) -> None:
        """End the streams that the engines send."""
        for outlet in self._all_outlets():
            outlet.close()

    def _sizes(self) -> tuple[tuple[int, ...], float, list[float], int]:
        """Returns a chunk's shape and seconds, what it makes for each output, and the bytes in which that waits."""
        raise NotImplementedError

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
            "payload": place.payload,
            "patience_s": PATIENCE_S if self._places.is_live else LONG_PATIENCE_S,
            "is_asked": lambda: (engine := self._now()) is not None and engine.is_stopped,
        }

    def _sink(self, output: int, number: int, closing: ExitStack) -> Any:
        """Returns the sink of an output. ``closing`` closes what ends with the engine."""
        own = self._outlets[output].items()  # they outlive the engine
        named: dict[str, Any] = {name: SimpleNamespace(write=each.write, close=lambda: None) for name, each in own}
        with ExitStack() as stack:
            for file in (place.file for place in self._destinations[output] if place.file is not None):
                path = numbered(file, number, self._tell)
                named[str(path)] = NewFile(self._file(output, path), path)
                stack.callback(named[str(path)].close)
            stack.pop_all()
        (sink, *more) = named.values()
        if more:
            sink = SinksBeside(named, self._places.is_live, self._fail, self._n_waiting)
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


def at_level(tell: Tell, level: str = INFO) -> Tell:
    """Returns a function that tells lines with the time (UTC) and a level."""
    return lambda text: tell(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {level} {text}")


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
