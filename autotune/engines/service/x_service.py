"""An X-engine as a service, and its file.

antennas = ["m000", "m001", "m002", "m003"]   # in the order of feng_id
channels = 4096                   # channels of the whole band
first_channel = 0
n_channels = 1024                 # channels of this engine
spectra_per_heap = 256
step = 8192                       # samples from one spectrum to the next
bits = 8
sample_rate_hz = 1712e6
sync_time_unix = "1700000000.0"
accumulate = 408                  # batches in a dump
batches_per_chunk = 8

[from]
listen = "239.10.10.10:7148"      # one address for all antennas, or a list with one for each

[to]
endpoints = "239.10.11.10:7148"
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import ref

from ...core import schema
from ...core.errors import UsageError
from ..files import checks
from ..files.reading import Tell, refuse
from ..files.toml import checked, read_toml
from ..jobs.running import Running
from ..jobs.sinks import visibility_sink
from ..network.dump_outlet import DumpOutlet
from ..network.endpoints import Endpoint
from ..network.outlet import PATIENCE_S as RECEIVER_PATIENCE_S
from ..network.received import CONFIRM, ReceivedVoltages
from ..run.counters import XCounters
from ..streams.samples import SampleInfo
from ..streams.times import moment
from ..streams.voltages import VoltageInfo
from ..x.engine import XEngine, visibility_info, x_settings
from .new_files import NewFile, numbered
from .served import Counts, Served
from .sinks_beside import NotClosed, SinkBeside, SinksBeside
from .stream_places import (
    ENGINE_CORES,
    LONG_PATIENCE_S,
    MOST_FILE,
    NIBBLES,
    SENDING,
    ListeningPlaces,
    endpoints_of,
    later,
    listening_places,
    nibbles_of,
    one_or_more,
    path_beside,
)

MOST_ACCUMULATED = 1 << 30
TO = schema.members_of(SENDING)
MEMBERS: Mapping[str, schema.Check] = {
    "antennas": schema.sequence_of(schema.as_word),
    "channels": checks.integer(1, checks.MOST_CHANNELS),
    "first_channel": checks.integer(0, checks.MOST_CHANNELS),
    "n_channels": checks.integer(1, checks.MOST_CHANNELS),
    "spectra_per_heap": checks.integer(1, checks.MOST_SPECTRA),
    "step": checks.integer(1, checks.MOST_STEP),
    "bits": checks.voltage_bits,
    "nibbles": NIBBLES,
    "sample_bits": checks.sample_bits,
    **{name: checks.SAMPLES[name] for name in ("sample_rate_hz", "centre_frequency_hz")},
    "sync_time_unix": moment,
    "accumulate": checks.integer(1, MOST_ACCUMULATED),
    "batches_per_chunk": checks.integer(1, 1 << 16),
    "slices": checks.integer(1, 1 << 16),
    "cores": ENGINE_CORES,
    "from": later,
    "to": later,
}
NEEDED = ("antennas", "channels", "sample_rate_hz", "accumulate", "from", "to")


@dataclass(frozen=True)
class DumpPlace:
    """A destination of dumps: an address or a file."""

    endpoint: Endpoint | None = None
    transport: str = "udp"
    interface: str = ""
    is_paced: bool = True
    cores: tuple[int, ...] = ()
    file: Path | None = None


@dataclass(frozen=True)
class XServiceSettings:
    """The settings in the file of an X-engine."""

    antennas: tuple[VoltageInfo, ...]  # the antennas' voltages in the channels of this engine
    n_channels: int  # channels of the whole band
    first_channel: int
    batches_per_dump: int
    batches_per_chunk: int
    places: ListeningPlaces
    dumps: tuple[DumpPlace, ...]
    n_slices: int | None = None
    cores: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # cores of the engine's threads, by thread name


def x_service_settings(path: Path) -> XServiceSettings:
    """Returns the settings in an X-engine's file.

    Raises:
        UsageError: for a file that cannot be read or is wrong, in one line with the table and the member.
    """
    settings = checked(path, "it", schema.members_of(MEMBERS, NEEDED), read_toml(path, MOST_FILE))
    channels, first = settings["channels"], settings.get("first_channel", 0)
    n_channels = settings.get("n_channels", channels - first)
    names = settings["antennas"]
    if not names or len(set(names)) < len(names):
        refuse(path, "antennas must be a list of one or more names, which differ")
    if first + n_channels > channels or first % n_channels or channels % n_channels:
        refuse(
            path,
            f"the engine's channels are {first} to {first + n_channels - 1} of {channels}; they must be one of several "
            "equal parts of the band",
        )
    places = listening_places(path, settings["from"])
    if len(places.members) not in (1, len(names)):
        refuse(path, f"[from] listen has {len(places.members)} entries: give one for all antennas, or {len(names)}")
    if places.transport == "tcp" and len(places.members) != len(names):
        refuse(path, f"[from] listen has one entry; with tcp each of the {len(names)} antennas needs its own")
    step = settings.get("step", 2 * channels)
    width = settings["sample_rate_hz"] / step
    centre = settings.get("centre_frequency_hz")
    if centre is not None:  # it is the frequency of channel channels / 2 of the whole band
        centre += (first + n_channels // 2 - channels // 2) * width
    antennas = tuple(
        VoltageInfo(
            n_channels,
            2,
            settings.get("bits", 8),
            settings.get("spectra_per_heap", 256),
            step,
            SampleInfo(
                settings.get("sample_bits", 10),
                2,
                settings["sample_rate_hz"],
                1,
                antenna=name,
                centre_frequency_hz=settings.get("centre_frequency_hz"),
                sync_time_unix=settings.get("sync_time_unix"),
            ),
            centre,
            width,
            nibbles=nibbles_of(settings),
        )
        for name in names
    )
    n_batches, per_chunk, n_slices = (
        settings["accumulate"],
        settings.get("batches_per_chunk", 8),
        settings.get("slices"),
    )
    try:
        x_settings(antennas, n_batches, per_chunk, n_slices)
    except UsageError as error:
        refuse(path, str(error))
    dumps = tuple(_place(path, each) for each in one_or_more(path, settings, "to", TO))
    cores = settings.get("cores", {})
    return XServiceSettings(antennas, channels, first, n_batches, per_chunk, places, dumps, n_slices, cores)


def _place(path: Path, table: Mapping[str, Any]) -> DumpPlace:
    places = endpoints_of(path, table.get("endpoints", ()))
    if len(places) + ("file" in table) != 1:
        refuse(path, "[[to]] must have one address as endpoints, or a file; give each place a [[to]] of its own")
    return DumpPlace(
        places[0] if places else None,
        table.get("transport", "udp"),
        table.get("interface", ""),
        table.get("paced", True),
        table.get("cores", ()),
        path_beside(path, table["file"]) if "file" in table else None,
    )


class XService:
    """Makes X-engines one after the other, which continue the same streams.

    Args:
        running: the device and its kernels.
        tell: takes a line about a sink that fails.

    Raises:
        UsageError: when nothing can be sent to an address.
    """

    def __init__(self, settings: XServiceSettings, running: Running, tell: Tell) -> None:
        self._settings, self._running, self._tell = settings, running, tell
        self._now: Callable[[], XEngine | None] = lambda: None  # the running engine, by a weak reference
        samples = settings.antennas[0].samples
        self.sample_rate_hz, self.sync_time_unix = samples.sample_rate_hz, samples.sync_time_unix
        self._kernels = running.kernels()
        self.listens_at, self.is_file = str(settings.places), settings.places.is_file
        self._info = visibility_info(settings.antennas, settings.batches_per_dump)
        self._outlets = {str(each.endpoint): self._outlet(each) for each in settings.dumps if each.endpoint is not None}

    def served(self, near: int, number: int) -> Served:
        """Returns a new engine; see ``Serving``."""
        settings, places = self._settings, self._settings.places
        n_members = len(places.members)
        source = ReceivedVoltages(
            settings.antennas,
            places.listening(),
            is_live=places.is_live,
            n_enders=len(settings.antennas),
            n_substreams=len(settings.antennas) // n_members,
            near=near,
            confirm=CONFIRM if places.is_live else 1,
        )
        closing = ExitStack()
        for outlet in self._outlets.values():
            outlet.forget()
        try:
            sink, others = self._sink(number, closing)
            engine = XEngine(
                self._running.backend,
                source,
                sink,
                self._kernels,
                batches_per_dump=settings.batches_per_dump,
                batches_per_chunk=settings.batches_per_chunk,
                complete_dumps=True,
                n_slices=settings.n_slices,
                cores=settings.cores,
            )
        except BaseException:
            closing.close()
            source.close()
            raise
        failed_before = sum(outlet.n_failed for outlet in self._outlets.values())

        def counts() -> list[Counts]:
            failed = sum(outlet.n_failed for outlet in self._outlets.values())
            return [_counts(engine.counters, others) | {"heaps_failed": failed - failed_before}]

        self._now = ref(engine)
        return Served(engine, source, counts, closing)

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection."""
        return [each for outlet in self._outlets.values() for each in outlet.not_connected]

    def close(self) -> None:
        """End the streams of dumps."""
        for outlet in self._outlets.values():
            outlet.close()

    def _outlet(self, place: DumpPlace) -> DumpOutlet:
        assert place.endpoint is not None
        is_live = self._settings.places.is_live
        return DumpOutlet(
            self._info,
            place.transport,
            [place.endpoint],
            first_channel=self._settings.first_channel,
            n_channels=self._settings.n_channels,
            is_paced=place.is_paced and is_live,
            interface=place.interface,
            cores=place.cores,
            patience_s=RECEIVER_PATIENCE_S if is_live else LONG_PATIENCE_S,
            is_asked=lambda: (engine := self._now()) is not None and engine.is_stopped,
        )

    def _sink(self, number: int, closing: ExitStack) -> tuple[Any, Sequence[SinkBeside]]:
        """Returns the sink of dumps. ``closing`` closes what ends with the engine."""
        named: dict[str, Any] = {name: NotClosed(outlet) for name, outlet in self._outlets.items()}
        with ExitStack() as stack:
            for each in self._settings.dumps:
                if each.file is not None:
                    path = numbered(each.file, number, self._tell)
                    named[str(path)] = NewFile(visibility_sink(path, self._info, False, self._tell), path)
                    stack.callback(named[str(path)].close)
            stack.pop_all()
        if len(named) == 1:
            (sink,) = named.values()
            closing.callback(sink.close)
            return sink, ()
        both = SinksBeside(named, self._settings.places.is_live, self._tell)
        closing.callback(both.close)
        return both, both.sinks


def _counts(counters: XCounters, others: Sequence[SinkBeside]) -> Counts:
    with counters.lock:
        counts: Counts = {name: getattr(counters, name) for name in COUNTED}
    counts["dumps_dropped"] += sum(sink.n_dropped for sink in others)
    return counts


COUNTED = (
    *("batches_in", "heaps_missing", "heaps_late", "chunks_dropped", "dumps_out", "dumps_empty", "dumps_dropped"),
    *("dumps_skipped", "saturated", "sink_error"),
)
