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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core import schema
from ...core.errors import UsageError
from ..files import checks
from ..files.reading import Tell, refuse
from ..files.toml import checked, read_toml
from ..jobs.running import Running
from ..jobs.sinks import visibility_sink
from ..network.dump_outlet import DumpOutlet
from ..network.received import ReceivedVoltages
from ..network.receiver import Listening
from ..streams.samples import SampleInfo
from ..streams.times import moment
from ..streams.visibilities import VisibilitySink
from ..streams.voltages import VoltageInfo
from ..x.engine import XEngine, visibility_info, x_settings
from .served import Serving
from .stream_places import (
    ENGINE_CORES,
    MOST_FILE,
    NIBBLES,
    SENDING,
    SendingPlace,
    later,
    listening_places,
    nibbles_of,
    one_or_more,
    sending_place,
    those_in,
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
class XServiceSettings:
    """The settings in the file of an X-engine."""

    antennas: tuple[VoltageInfo, ...]  # the antennas' voltages in the channels of this engine
    n_channels: int  # channels of the whole band
    first_channel: int
    batches_per_dump: int
    batches_per_chunk: int
    places: Listening
    dumps: tuple[SendingPlace, ...]
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
                **those_in(settings, "centre_frequency_hz", "sync_time_unix"),
            ),
            centre,
            width,
            nibbles=nibbles_of(settings),
        )
        for name in names
    )
    n_batches, per_chunk = settings["accumulate"], settings.get("batches_per_chunk", 8)
    n_slices = settings.get("slices")
    try:
        x_settings(antennas, n_batches, per_chunk, n_slices)
    except UsageError as error:
        refuse(path, str(error))
    dumps = tuple(_place(path, each) for each in one_or_more(path, settings, "to", TO))
    cores = settings.get("cores", {})
    return XServiceSettings(antennas, channels, first, n_batches, per_chunk, places, dumps, n_slices, cores)


def _place(path: Path, table: Mapping[str, Any]) -> SendingPlace:
    place = sending_place(path, table)
    if len(place.endpoints) + (place.file is not None) != 1:
        refuse(path, "[[to]] must have one address as endpoints, or a file; give each place a [[to]] of its own")
    return place


class XService(Serving):
    """Makes X-engines one after the other, which continue the same streams; see ``Serving``."""

    counted = (
        *("batches_in", "heaps_missing", "heaps_late", "chunks_dropped", "dumps_out", "dumps_empty", "dumps_dropped"),
        *("dumps_skipped", "saturated", "sink_error"),
    )
    dropped = "dumps_dropped"

    def __init__(self, settings: XServiceSettings, running: Running, tell: Tell) -> None:
        self._settings = settings
        self._info = visibility_info(settings.antennas, settings.batches_per_dump)
        super().__init__(settings.places, settings.antennas[0].samples, [settings.dumps], running, tell)

    def _source(self, **receiving: Any) -> ReceivedVoltages:
        antennas = self._settings.antennas
        n_substreams = len(antennas) // len(self._places.members)
        return ReceivedVoltages(antennas, n_enders=len(antennas), n_substreams=n_substreams, **receiving)

    def _engine(self, source: Any, sinks: Sequence[VisibilitySink]) -> XEngine:
        return XEngine(
            self._running.backend,
            source,
            sinks[0],
            self._kernels,
            batches_per_dump=self._settings.batches_per_dump,
            batches_per_chunk=self._settings.batches_per_chunk,
            complete_dumps=True,
            n_slices=self._settings.n_slices,
            cores=self._settings.cores,
        )

    def _outlet(self, output: int, place: SendingPlace) -> DumpOutlet:
        first, n = self._settings.first_channel, self._settings.n_channels
        sending = self._sending(place)
        return DumpOutlet(self._info, place.transport, place.endpoints, first_channel=first, n_channels=n, **sending)

    def _file(self, output: int, path: Path) -> VisibilitySink:
        return visibility_sink(path, self._info, False, self._tell)
