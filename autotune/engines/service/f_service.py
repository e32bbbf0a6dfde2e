"""An F-engine as a service, and its file, which docs/network-files.md describes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...core import schema
from ...core.errors import UsageError
from ...system.setting import Setting, declared, read_settings, shared
from ..corrections.gains import Gains
from ..digitiser.digitiser_settings import PACKET, SAMPLE_BITS
from ..f.chain import Output, voltage_info
from ..f.engine import FEngine
from ..files import checks
from ..files.reading import Tell, header_setting
from ..files.toml import read_toml
from ..jobs.band_settings import DELAYS_DIFFER, Bands
from ..jobs.running import Running
from ..jobs.sinks import voltage_sink
from ..network.received import PATIENCE_S, ReceivedSamples
from ..network.voltage_outlet import VoltageOutlet
from ..run.counters import FCounters
from ..streams.samples import SampleInfo
from ..streams.voltages import REAL_HIGH, REAL_LOW, VoltageSink
from .first_level import FirstLevel
from .served import Counts, Serving
from .stream_places import ENGINE_CORES, MOST_FILE, NIBBLES, EngineCores, ListeningPlace, SendingPlace, nibbles_of

INDEX, N_ANTENNAS = (checks.integer(least, checks.MOST_ANTENNAS) for least in (0, 1))
CHUNK = replace(declared(Running)["chunk"].setting, allowed=checks.integer(1, 1 << 30))


@dataclass(frozen=True, kw_only=True)
class FBand(SendingPlace, Bands):
    """A table [[to]] of an F-engine's file: a band, and the destinations of its voltages."""

    nibbles: Annotated[str, replace(NIBBLES, usual=f"{NIBBLES.usual}; file: `{REAL_LOW}`")] = ""
    whole_heaps: bool = True

    def __post_init__(self) -> None:
        n = len(self.endpoints)
        if not n and self.file is None:
            raise UsageError("has neither endpoints nor file: give at least one of the two")
        if n and self.channels % n:
            raise UsageError(f"has {self.channels} channels, which {n} endpoints cannot share evenly")
        object.__setattr__(self, "nibbles", nibbles_of(self.nibbles, self.bits, REAL_HIGH if n else REAL_LOW))
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class FServiceSettings:
    """The settings in the file of an F-engine."""

    sample_rate_hz: Annotated[float, header_setting("sample_rate_hz")]
    sample_bits: Annotated[int, SAMPLE_BITS] = 10
    n_pols: Annotated[int, Setting("Polarisations, 1 or 2.", checks.CHECKS["n_pols"])] = 2
    packet: Annotated[int, PACKET] = 4096
    antenna: Annotated[str, header_setting("antenna")] = ""
    feng_id: Annotated[
        int, Setting("Index of the antenna, 0 to `n_antennas` - 1, which sets the numbers of its heaps.", INDEX, "0")
    ] = 0
    n_antennas: Annotated[int, Setting("Antennas of the array.", N_ANTENNAS, "1 if `feng_id` is 0")] = 0
    sync_time_unix: Annotated[Fraction | None, header_setting("sync_time_unix")] = None
    centre_frequency_hz: Annotated[float | None, header_setting("centre_frequency_hz")] = None
    position_m: Annotated[tuple[float, float, float] | None, header_setting("position_m")] = None
    chunk: Annotated[int | None, CHUNK] = None
    max_delay_diff: Annotated[int | None, DELAYS_DIFFER] = None
    patience_s: Annotated[float, Setting("Seconds that the start waits for both polarisations.", schema.as_amount)] = (
        PATIENCE_S
    )
    cores: Annotated[EngineCores, ENGINE_CORES] = field(default_factory=dict)
    places: Annotated[
        ListeningPlace,
        Setting("`listen` has an entry for each polarisation; without `tcp` one may do.", ListeningPlace, key="from"),
    ]
    outputs: Annotated[tuple[FBand, ...], Setting("A table `[[to]]` for each band.", FBand, key="to")]

    def __post_init__(self) -> None:
        if self.packet * self.sample_bits % 8:
            what = f"packet={self.packet} samples of {self.sample_bits} bits"
            raise UsageError(f"{what} do not fill whole bytes; give a multiple of 8")
        if self.feng_id and not self.n_antennas:
            raise UsageError(f"feng_id is {self.feng_id}, so n_antennas is needed: all heaps have numbers of their own")
        if self.n_antennas and self.feng_id >= self.n_antennas:
            last = f"0 to n_antennas - 1 = {self.n_antennas - 1}"
            raise UsageError(f"feng_id is {self.feng_id}, must be an antenna's index, {last}")
        if self.places.transport == "tcp" and len(self.places.listen) != self.n_pols:
            n = f"[from] listen must have {self.n_pols} entries"
            raise UsageError(f"{n} with tcp: each polarisation has its connection")

    @cached_property
    def info(self) -> SampleInfo:
        """Returns the header of the samples."""
        return SampleInfo(**shared(self, SampleInfo))


def f_service_settings(path: Path) -> FServiceSettings:
    """Returns the settings in an F-engine's file. Raises UsageError for a wrong one, in one line."""
    return read_settings(path, "it", FServiceSettings, read_toml(path, MOST_FILE))


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
        self._gains: list[Gains] = []  # each output's, of the newest engine
        self._chunk = running.chunk_samples([info]) if settings.chunk is None else settings.chunk
        self._bands = [replace(band, max_delay_diff=settings.max_delay_diff) for band in settings.outputs]
        self._infos = [
            replace(
                voltage_info(info, self._output(band).settings),
                is_delayed=band.delays is not None,
                phase_centre=band.direction(),
            )
            for band in self._bands
        ]
        super().__init__(settings.places.listening, info, [[band] for band in self._bands], running, tell)

    def _source(self, **receiving: Any) -> ReceivedSamples:
        return ReceivedSamples(self._settings.info, patience_s=self._settings.patience_s, **receiving)

    def _engine(self, source: Any, sinks: Sequence[VoltageSink]) -> FEngine:
        settings, n_packets = self._settings, max(1, self._chunk // self._settings.packet)
        outputs = [self._output(band) for band in self._bands]
        self._gains = [output.gains for output in outputs]
        by_level = []
        for output, band, sink in zip(outputs, self._bands, sinks, strict=True):
            output.sink = sink
            if band.gains is None:
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
        info, own, sending = self._infos[output], self._settings, self._sending(place)
        return VoltageOutlet(info, own.feng_id, own.n_antennas or 1, place.transport, place.endpoints, **sending)

    def _file(self, output: int, path: Path) -> VoltageSink:
        return voltage_sink(path, self._infos[output], False, self._tell)

    def _more_counts(self, output: int, counters: FCounters) -> Counts:
        sizes = np.abs(self._gains[output].at(checks.MOST_TIME)[1])
        return {
            "gains": [[float(f"{each:.6g}") for each in (pol.min(), pol.max())] for pol in sizes.T],
            "saturated": [int(n) for n in counters.saturated],
            "power_dbfs": [round(level, 2) for level in counters.dbfs if level > -1e9],
            "latency_s": round(counters.latency_s, 4),
        }
