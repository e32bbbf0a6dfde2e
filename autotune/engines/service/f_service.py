"""An F-engine as a service, and its file, which docs/network-files.md describes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, prod
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...core import schema
from ...core.errors import UsageError
from ...system.setting import Setting, declared, read_settings, shared
from ..corrections.delays import BEFORE, DelayModel, Piece
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
from .kept_file import KeptFile
from .served import Counts, Serving, at_level
from .stream_places import ENGINE_CORES, KEPT, MOST_FILE, NIBBLES, EngineCores, ListeningPlace, SendingPlace, nibbles_of

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
    kept: Annotated[Path | None, KEPT] = None
    path: Path  # the file's
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
        self._chunk = running.chunk_samples([info]) if settings.chunk is None else settings.chunk
        self._bands = [replace(band, max_delay_diff=settings.max_delay_diff) for band in settings.outputs]
        self._outputs = list(map(self._output, self._bands))
        self._own: set[int] = set()  # outputs whose gains or delays are no longer only those of the file
        self._measured: dict[int, int] = {}  # the time at which an output's gains were measured in this engine
        self._infos = [
            replace(
                voltage_info(info, output.settings), is_delayed=band.delays is not None, phase_centre=band.direction()
            )
            for band, output in zip(self._bands, self._outputs, strict=True)
        ]
        about = [info, *map(self._about, range(len(self._bands)))]
        kept = KeptFile(settings.kept or settings.path.with_suffix(".kept.json"), about, at_level(tell))
        super().__init__(settings.places.listening, info, [[band] for band in self._bands], running, tell, kept)
        kept.restore(self._restore)

    def set_gains(self, output: int, start: int, values: complex | np.ndarray) -> None:
        """Set the gains of an output's heaps from sample ``start`` on, also for later engines; see ``Gains.set``."""
        self._outputs[output].gains.set(start, values)
        self._own.add(output)
        self._keep()

    def add_delay(self, output: int, pol: int, piece: Piece) -> None:
        """Add a piece to an output's delays, also for later engines; see ``DelayModel.add``."""
        band, own = self._bands[output], self._outputs[output]
        (of_band,) = band.output(own.settings, [DelayModel(piece)], own.gains).delays
        own.delays[pol].add(of_band.pieces[-1])
        self._own.add(output)
        self._keep()

    def _source(self, **receiving: Any) -> ReceivedSamples:
        info, patience_s = self._settings.info, self._settings.patience_s
        return ReceivedSamples(info, self._places, is_live=self._places.is_live, patience_s=patience_s, **receiving)

    def _engine(self, source: Any, sinks: Sequence[VoltageSink]) -> FEngine:
        settings, n_packets = self._settings, max(1, self._chunk // self._settings.packet)
        self._settle()
        for output, sink in zip(self._outputs, sinks, strict=True):
            output.sink = sink
        by_level = {number: output for number, output in enumerate(self._outputs) if self._is_by_level(number)}

        def measured(line: str) -> None:
            self._tell(line)
            self._measured.update((number, output.gains.pieces[-1][0]) for number, output in by_level.items())
            self._own.update(by_level)
            self._keep()

        if by_level:
            levelled = [(output.settings, output.gains) for output in by_level.values()]
            source.looks.append(FirstLevel(settings.info, levelled, measured).look)
        return FEngine(self._running.backend, source, self._outputs, n_packets, self._kernels, cores=settings.cores)

    def _is_by_level(self, number: int) -> bool:
        return self._bands[number].gains is None and number not in self._own

    # ------------------------------------------------------------------ gains, delays and times that are kept
    def _settle(self) -> None:
        """Make gains that the last engine has measured hold from the beginning on."""
        while self._measured:
            number, time = self._measured.popitem()
            self._outputs[number].gains.begin_at(time)

    def _shift(self, samples: int) -> None:
        self._settle()
        for output in self._outputs:
            output.gains.shift(samples)
            for model in output.delays:
                model.shift(samples)

    def _about(self, number: int) -> object:
        """Returns what must be the same for kept gains and delays to be those of this output."""
        band, gains, delays = self._bands[number], *self._pieces(number)
        return band.channels, band.taps, band.window, band.bits, band.narrow, gains, delays

    def _pieces(self, number: int) -> tuple[object, object]:
        """Returns an output's gains and delays, as JSON has them. Gains that all channels share are stated once."""
        own, since = self._outputs[number], self._measured.get(number, BEFORE)
        gains = [(start if start > since else BEFORE, each) for start, each in own.gains.pieces if start >= since]
        gains = [(start, each[: 1 if (each == each[0]).all() else None].view("2f4").tolist()) for start, each in gains]
        return gains, [[asdict(piece) for piece in model.pieces] for model in own.delays]

    def _content(self) -> Counts:
        outputs = [self._pieces(number) if number in self._own else None for number in range(len(self._outputs))]
        return super()._content() | {"outputs": outputs}

    def _restore(self, content: Counts) -> None:
        for number, (output, pieces) in enumerate(zip(self._outputs, content["outputs"], strict=True)):
            if pieces is None:
                continue
            gains, delays = pieces
            for start, values in gains:
                output.gains.set(start, np.array(values, "f4") @ np.array([1, 1j], np.complex64))
            output.delays = [DelayModel(*(Piece(**piece) for piece in each)) for each in delays]
            self._own.add(number)
        super()._restore(content)

    def _output(self, bands: Bands) -> Output:
        info = self._settings.info
        delays = bands.delays_of(info)
        (settings,) = bands.settings(info, self._chunk, delays)
        gains = Gains(bands.channels, info.n_pols) if bands.gains is None else bands.gains_of(info)
        return bands.output(settings, delays, gains)

    def _sizes(self) -> tuple[tuple[int, ...], float, list[float], int]:
        info, n_heaps = self._settings.info, [self._chunk / each.heap_samples for each in self._infos]
        n_bytes = sum(3 * ceil(n) * prod(each.heap_shape) for n, each in zip(n_heaps, self._infos, strict=True))
        shape = info.n_pols, self._chunk // info.packet * info.packet * info.sample_bits // 8
        return shape, self._chunk / info.sample_rate_hz, n_heaps, n_bytes

    def _outlet(self, output: int, place: SendingPlace) -> VoltageOutlet:
        info, own, sending = self._infos[output], self._settings, self._sending(place)
        return VoltageOutlet(info, own.feng_id, own.n_antennas or 1, place.transport, place.endpoints, **sending)

    def _file(self, output: int, path: Path) -> VoltageSink:
        info = self._infos[output]
        return voltage_sink(path, replace(info, samples=self._now_of(info.samples)), False, self._tell)

    def _more_counts(self, output: int, counters: FCounters) -> Counts:
        sizes = np.abs(self._outputs[output].gains.at(checks.MOST_TIME)[1])
        return {
            "gains": [[float(f"{each:.6g}") for each in (pol.min(), pol.max())] for pol in sizes.T],
            "saturated": [int(n) for n in counters.saturated],
            "power_dbfs": [round(level, 2) for level in counters.dbfs if level > -1e9],
            "latency_s": round(counters.latency_s, 4),
        }
