"""An F-engine as a service, and its file.

antenna = "m000"
feng_id = 0                       # the antenna's index, 0 to n_antennas - 1
n_antennas = 4
sample_rate_hz = 1712e6
sample_bits = 10
packet = 4096                     # samples in a heap from the digitiser
sync_time_unix = "1700000000.0"   # UTC when the digitiser's time was 0
max_delay_diff = 1048576          # samples by which delays may differ
patience_s = 0.2                  # the start waits so long for both polarisations
cores.compute = [4]               # cores of a thread of the engine: reads, returns, compute or writes

[from]
listen = ["239.1.1.1+7:7148", "239.1.1.9+7:7148"]   # an entry for each polarisation

[[to]]                            # one table for each band
channels = 4096
taps = 16
bits = 8
spectra_per_heap = 256
endpoints = "239.10.10.10+3:7148" # each address gets a quarter of the channels
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import ref

from ...core import schema
from ...core.errors import UsageError
from ..corrections.gains import Gains
from ..f.chain import Output, voltage_info
from ..f.engine import FEngine
from ..files import checks
from ..files.reading import Tell, refuse
from ..files.toml import checked, read_toml
from ..jobs.band_settings import Bands, Narrow
from ..jobs.running import Running
from ..jobs.sinks import voltage_sink
from ..network.endpoints import Endpoint
from ..network.outlet import PATIENCE_S as RECEIVER_PATIENCE_S
from ..network.received import CONFIRM, PATIENCE_S, ReceivedSamples
from ..network.voltage_outlet import VoltageOutlet
from ..run.counters import FCounters
from ..streams.samples import SampleInfo
from ..streams.times import moment
from ..streams.voltages import REAL_HIGH, REAL_LOW, VoltageInfo, VoltageSink
from .first_level import FirstLevel
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

MOST_PACKET = 1 << 16
NARROW = schema.members_of(
    {"centre_hz": checks.real, "decimation": checks.integer(2, 1 << 20), "taps": checks.integer(1, 1 << 20)},
    ("centre_hz", "decimation", "taps"),
)


def gains_of_file(value: object) -> float | str:
    """Checks for a number or the name of a file of gains."""
    return schema.as_word(value) if isinstance(value, str) else checks.real(value)


BAND: Mapping[str, schema.Check] = {
    "channels": checks.integer(1, checks.MOST_CHANNELS),
    "taps": checks.integer(1, 64),
    "window": schema.as_word,
    "bits": checks.voltage_bits,
    "nibbles": NIBBLES,
    "spectra_per_heap": checks.integer(1, checks.MOST_SPECTRA),
    "delays": schema.as_word,
    "gains": gains_of_file,
    "narrow": NARROW,
    **SENDING,
}
MEMBERS: Mapping[str, schema.Check] = {
    **{name: checks.SAMPLES[name] for name in ("antenna", "sample_rate_hz", "centre_frequency_hz", "position_m")},
    "sync_time_unix": moment,
    "sample_bits": checks.integer(2, 16),
    "n_pols": checks.integer(1, 2),
    "packet": checks.integer(1, MOST_PACKET),
    "feng_id": checks.integer(0, checks.MOST_ANTENNAS),
    "n_antennas": checks.integer(1, checks.MOST_ANTENNAS),
    "chunk": checks.integer(1, 1 << 30),
    "max_delay_diff": checks.integer(0, 1 << 26),
    "patience_s": schema.as_amount,
    "cores": ENGINE_CORES,
    "from": later,
    "to": later,
}
NEEDED = ("sample_rate_hz", "from", "to")


@dataclass(frozen=True)
class FBandPlaces:
    """One band of an F-engine, and the destinations of its voltages: addresses, a file, or both."""

    bands: Bands
    endpoints: tuple[Endpoint, ...]
    transport: str = "udp"
    interface: str = ""
    is_paced: bool = True
    cores: tuple[int, ...] = ()
    file: Path | None = None


@dataclass(frozen=True)
class FServiceSettings:
    """The settings in the file of an F-engine."""

    info: SampleInfo
    places: ListeningPlaces
    outputs: tuple[FBandPlaces, ...]
    feng_id: int = 0
    n_antennas: int = 1
    chunk: int | None = None  # samples; None takes a number that suits the device
    patience_s: float = PATIENCE_S
    cores: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # cores of the engine's threads, by thread name


def f_service_settings(path: Path) -> FServiceSettings:
    """Returns the settings in an F-engine's file.

    Raises:
        UsageError: for a file that cannot be read or is wrong, in one line with the table and the member.
    """
    settings = checked(path, "it", schema.members_of(MEMBERS, NEEDED), read_toml(path, MOST_FILE))
    packet = settings.get("packet", 4096)
    bits = settings.get("sample_bits", 10)
    if packet * bits % 8:
        refuse(path, f"packet={packet} samples of {bits} bits do not fill whole bytes; give a multiple of 8")
    info = SampleInfo(
        sample_bits=bits,
        n_pols=settings.get("n_pols", 2),
        packet=packet,
        **{name: settings[name] for name in INFO if name in settings},
    )
    feng_id, n_antennas = settings.get("feng_id", 0), settings.get("n_antennas", settings.get("feng_id", 0) + 1)
    if feng_id >= n_antennas:
        refuse(path, f"feng_id is {feng_id}, must be an antenna's index, 0 to n_antennas - 1 = {n_antennas - 1}")
    places = listening_places(path, settings["from"])
    if places.transport == "tcp" and len(places.members) != info.n_pols:
        refuse(path, f"[from] listen must have {info.n_pols} entries with tcp: each polarisation has its connection")
    bands = one_or_more(path, settings, "to", schema.members_of(BAND, ("channels",)))
    outputs = [_band(path, each, settings) for each in bands]
    return FServiceSettings(
        info,
        places,
        tuple(outputs),
        feng_id,
        n_antennas,
        settings.get("chunk"),
        settings.get("patience_s", PATIENCE_S),
        settings.get("cores", {}),
    )


INFO = ("antenna", "sample_rate_hz", "centre_frequency_hz", "position_m", "sync_time_unix")


def _band(path: Path, table: Mapping[str, Any], whole: Mapping[str, Any]) -> FBandPlaces:
    if not ("endpoints" in table or "file" in table):
        refuse(path, "[[to]] has neither endpoints nor file: give at least one of the two")
    places = endpoints_of(path, table.get("endpoints", ()))
    if places and table["channels"] % len(places):
        refuse(path, f"[[to]] has {table['channels']} channels, which {len(places)} endpoints cannot share evenly")
    gains = table.get("gains")
    try:
        bands = Bands(
            table["channels"],
            delays=path_beside(path, table["delays"]) if "delays" in table else None,
            gains=path_beside(path, gains) if isinstance(gains, str) else gains,
            narrow=(Narrow(**table["narrow"]),) if "narrow" in table else (),
            max_delay_diff=whole.get("max_delay_diff"),
            nibbles=nibbles_of(table, default=REAL_HIGH if places else REAL_LOW),
            whole_heaps=True,
            **{name: table[name] for name in ("taps", "window", "bits", "spectra_per_heap") if name in table},
        )
    except UsageError as error:
        refuse(path, f"[[to]] {error}")
    return FBandPlaces(
        bands,
        places,
        table.get("transport", "udp"),
        table.get("interface", ""),
        table.get("paced", True),
        table.get("cores", ()),
        path_beside(path, table["file"]) if "file" in table else None,
    )


class FService:
    """Makes F-engines one after the other, which continue the same streams.

    Args:
        running: the device and its kernels.
        tell: takes a line about the level of the samples, and one about a sink that fails.

    Raises:
        UsageError: when nothing can be sent to an address, or the bands do not fit the samples.
    """

    def __init__(self, settings: FServiceSettings, running: Running, tell: Tell) -> None:
        self._settings, self._running, self._tell = settings, running, tell
        self._now: Callable[[], FEngine | None] = lambda: None  # the running engine, by a weak reference
        info = settings.info
        self.sample_rate_hz, self.sync_time_unix = info.sample_rate_hz, info.sync_time_unix
        self._chunk = running.chunk_samples([info]) if settings.chunk is None else settings.chunk
        self._kernels = running.kernels()
        self.listens_at, self.is_file = str(settings.places), settings.places.is_file
        self._made = [self._output(place.bands) for place in settings.outputs]
        infos = [voltage_info(info, each.settings) for each in self._made]
        self._infos = [
            replace(voltages, is_delayed=place.bands.delays is not None, phase_centre=place.bands.direction())
            for voltages, place in zip(infos, settings.outputs, strict=True)
        ]
        self._outlets = [
            self._outlet(place, voltages) for place, voltages in zip(settings.outputs, self._infos, strict=True)
        ]

    def served(self, near: int, number: int) -> Served:
        """Returns a new engine; see ``Serving``."""
        settings, places = self._settings, self._settings.places
        outputs = [self._output(place.bands) for place in settings.outputs]
        source = ReceivedSamples(
            settings.info,
            places.listening(),
            is_live=places.is_live,
            near=near,
            confirm=CONFIRM if places.is_live else 1,
            patience_s=settings.patience_s,
        )
        by_level = [
            (output.settings, output.gains)
            for output, place in zip(outputs, settings.outputs, strict=True)
            if place.bands.gains is None
        ]
        closing = ExitStack()
        counted: list[Sequence[SinkBeside]] = []
        n_packets = max(1, self._chunk // settings.info.packet)
        lends: Any = FirstLevel(source, by_level, self._tell) if by_level else source
        try:
            for output, outlet, place, info in zip(outputs, self._outlets, settings.outputs, self._infos, strict=True):
                if outlet is not None:
                    outlet.forget()
                output.sink, others = self._sink(outlet, place, info, number, closing)
                counted.append(others)
            engine = FEngine(self._running.backend, lends, outputs, n_packets, self._kernels, cores=settings.cores)
        except BaseException:
            closing.close()
            source.close()
            raise
        failed_before = [0 if outlet is None else outlet.n_failed for outlet in self._outlets]

        def counts() -> list[Counts]:
            failed = [0 if outlet is None else outlet.n_failed for outlet in self._outlets]
            return [
                _counts(counters, others) | {"heaps_failed": now - before}
                for counters, others, now, before in zip(engine.counters, counted, failed, failed_before, strict=True)
            ]

        self._now = ref(engine)
        return Served(engine, source, counts, closing)

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection."""
        return [each for outlet in self._outlets if outlet is not None for each in outlet.not_connected]

    def close(self) -> None:
        """End the streams of voltages."""
        for outlet in self._outlets:
            if outlet is not None:
                outlet.close()

    def _output(self, bands: Bands) -> Output:
        info = self._settings.info
        delays = bands.delays_of(info)
        (settings,) = bands.settings(info, self._chunk, delays)
        gains = Gains(bands.channels, info.n_pols) if bands.gains is None else bands.gains_of(info)
        return bands.output(settings, delays, gains)

    def _outlet(self, place: FBandPlaces, info: VoltageInfo) -> VoltageOutlet | None:
        if not place.endpoints:
            return None
        return VoltageOutlet(
            info,
            self._settings.feng_id,
            self._settings.n_antennas,
            place.transport,
            place.endpoints,
            is_paced=place.is_paced and self._settings.places.is_live,
            interface=place.interface,
            cores=place.cores,
            patience_s=RECEIVER_PATIENCE_S if self._settings.places.is_live else LONG_PATIENCE_S,
            is_asked=lambda: (engine := self._now()) is not None and engine.is_stopped,
        )

    def _sink(
        self, outlet: VoltageOutlet | None, place: FBandPlaces, info: VoltageInfo, number: int, closing: ExitStack
    ) -> tuple[VoltageSink, Sequence[SinkBeside]]:
        """Returns the sink of a band's voltages. ``closing`` closes what ends with the engine."""
        if place.file is None:
            assert outlet is not None
            return outlet, ()
        path = numbered(place.file, number, self._tell)
        file = NewFile(voltage_sink(path, info, False, self._tell), path)
        if outlet is None:
            closing.callback(file.close)
            return file, ()
        named = {str(path): file, "the network": NotClosed(outlet)}
        both = SinksBeside(named, self._settings.places.is_live, self._tell)
        closing.callback(both.close)
        return both, both.sinks


def _counts(counters: FCounters, others: Sequence[SinkBeside]) -> Counts:
    with counters.lock:
        counts: Counts = {name: getattr(counters, name) for name in COUNTED}
        counts["saturated"] = [int(n) for n in counters.saturated]
        counts["power_dbfs"] = [round(level, 2) for level in counters.dbfs if level > -1e9]
    counts["heaps_dropped"] += sum(sink.n_dropped for sink in others)
    counts["latency_s"] = round(counters.latency_s, 4)
    return counts


COUNTED = (
    *("samples_in", "packets_missing", "chunks_dropped", "heaps_out", "heaps_missing"),
    *("spectra_beyond", "heaps_dropped", "sink_error"),
)
