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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
from ..network.received import PATIENCE_S, ReceivedSamples
from ..network.receiver import Listening
from ..network.voltage_outlet import VoltageOutlet
from ..run.counters import FCounters
from ..streams.samples import SampleInfo
from ..streams.times import moment
from ..streams.voltages import REAL_HIGH, REAL_LOW, VoltageSink
from .first_level import FirstLevel
from .served import Counts, Serving
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
    path_beside,
    sending_place,
    those_in,
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
class FServiceSettings:
    """The settings in the file of an F-engine."""

    info: SampleInfo
    places: Listening
    outputs: tuple[tuple[Bands, SendingPlace], ...]  # each band, and the destinations of its voltages
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
        **those_in(settings, *INFO),
    )
    feng_id, n_antennas = settings.get("feng_id", 0), settings.get("n_antennas", settings.get("feng_id", 0) + 1)
    if feng_id >= n_antennas:
        refuse(path, f"feng_id is {feng_id}, must be an antenna's index, 0 to n_antennas - 1 = {n_antennas - 1}")
    places = listening_places(path, settings["from"])
    if places.transport == "tcp" and len(places.members) != info.n_pols:
        refuse(path, f"[from] listen must have {info.n_pols} entries with tcp: each polarisation has its connection")
    bands = one_or_more(path, settings, "to", schema.members_of(BAND, ("channels",)))
    outputs = [_band(path, each, settings) for each in bands]
    rest = those_in(settings, "chunk", "patience_s", "cores")
    return FServiceSettings(info, places, tuple(outputs), feng_id, n_antennas, **rest)


INFO = ("antenna", "sample_rate_hz", "centre_frequency_hz", "position_m", "sync_time_unix")


def _band(path: Path, table: Mapping[str, Any], whole: Mapping[str, Any]) -> tuple[Bands, SendingPlace]:
    if not ("endpoints" in table or "file" in table):
        refuse(path, "[[to]] has neither endpoints nor file: give at least one of the two")
    place = sending_place(path, table)
    n = len(place.endpoints)
    if n and table["channels"] % n:
        refuse(path, f"[[to]] has {table['channels']} channels, which {n} endpoints cannot share evenly")
    gains = table.get("gains")
    try:
        bands = Bands(
            table["channels"],
            delays=path_beside(path, table["delays"]) if "delays" in table else None,
            gains=path_beside(path, gains) if isinstance(gains, str) else gains,
            narrow=(Narrow(**table["narrow"]),) if "narrow" in table else (),
            max_delay_diff=whole.get("max_delay_diff"),
            nibbles=nibbles_of(table, default=REAL_HIGH if n else REAL_LOW),
            whole_heaps=True,
            **those_in(table, "taps", "window", "bits", "spectra_per_heap"),
        )
    except UsageError as error:
        refuse(path, f"[[to]] {error}")
    return bands, place


class FService(Serving):
    """Makes F-engines one after the other, which continue the same streams.

    Args:
        running: the device and its kernels.
        tell: takes a line about the level of the samples, and one about a sink that fails.

    Raises:
        UsageError: when nothing can be sent to an address, or the bands do not fit the samples.
    """

    counted = (
        *("samples_in", "packets_missing", "chunks_dropped", "heaps_out", "heaps_missing"),
        *("spectra_beyond", "heaps_dropped", "sink_error"),
    )
    dropped = "heaps_dropped"

    def __init__(self, settings: FServiceSettings, running: Running, tell: Tell) -> None:
        self._settings, info = settings, settings.info
        self._chunk = running.chunk_samples([info]) if settings.chunk is None else settings.chunk
        headers = [voltage_info(info, self._output(bands).settings) for bands, _ in settings.outputs]
        self._infos = [
            replace(header, is_delayed=bands.delays is not None, phase_centre=bands.direction())
            for header, (bands, _) in zip(headers, settings.outputs, strict=True)
        ]
        super().__init__(settings.places, info, [[place] for _, place in settings.outputs], running, tell)

    def _source(self, **receiving: Any) -> ReceivedSamples:
        return ReceivedSamples(self._settings.info, patience_s=self._settings.patience_s, **receiving)

    def _engine(self, source: Any, sinks: Sequence[VoltageSink]) -> FEngine:
        settings, n_packets = self._settings, max(1, self._chunk // self._settings.info.packet)
        outputs = [self._output(bands) for bands, _ in settings.outputs]
        by_level = []
        for output, (bands, _), sink in zip(outputs, settings.outputs, sinks, strict=True):
            output.sink = sink
            if bands.gains is None:
                by_level.append((output.settings, output.gains))
        if by_level:
            source = FirstLevel(source, by_level, self._tell)
        return FEngine(self._running.backend, source, outputs, n_packets, self._kernels, cores=settings.cores)

    def _output(self, bands: Bands) -> Output:
        info = self._settings.info
        delays = bands.delays_of(info)
        (settings,) = bands.settings(info, self._chunk, delays)
        gains = Gains(bands.channels, info.n_pols) if bands.gains is None else bands.gains_of(info)
        return bands.output(settings, delays, gains)

    def _outlet(self, output: int, place: SendingPlace) -> VoltageOutlet:
        info, own = self._infos[output], self._settings
        sending = self._sending(place)
        return VoltageOutlet(info, own.feng_id, own.n_antennas, place.transport, place.endpoints, **sending)

    def _file(self, output: int, path: Path) -> VoltageSink:
        return voltage_sink(path, self._infos[output], False, self._tell)

    def _more_counts(self, counters: FCounters) -> Counts:
        return {
            "saturated": [int(n) for n in counters.saturated],
            "power_dbfs": [round(level, 2) for level in counters.dbfs if level > -1e9],
            "latency_s": round(counters.latency_s, 4),
        }
