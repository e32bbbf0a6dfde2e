"""An X-engine as a service, and its file, which docs/network-files.md describes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, Any

from ...core import schema
from ...core.errors import UsageError
from ...system.setting import Setting, declared, read_settings, shared
from ..digitiser.digitiser_settings import TEXTS
from ..files import checks
from ..files.reading import Tell, header_setting
from ..files.toml import read_toml
from ..jobs.band_settings import Bands
from ..jobs.running import Running
from ..jobs.sinks import visibility_sink
from ..network.dump_outlet import DumpOutlet
from ..network.received import MOST_GAP_S, ReceivedVoltages
from ..streams.samples import SampleInfo
from ..streams.visibilities import VisibilitySink
from ..streams.voltages import VoltageInfo
from ..x.engine import XEngine, visibility_info, x_settings
from ..x.x_settings import XSettings
from .kept_file import KeptFile
from .served import Serving, at_level
from .stream_places import ENGINE_CORES, KEPT, MOST_FILE, NIBBLES, EngineCores, ListeningPlace, SendingPlace, nibbles_of

BATCHES, N_DUMPED = checks.integer(1, 1 << 16), checks.integer(1, 1 << 30)
REORDER_S = 0.3
FIRST_CHANNEL, STEP = checks.integer(0, checks.MOST_CHANNELS), checks.integer(1, checks.MOST_STEP)
SLICES = "[Slices](engines-kernels.md#how-many-slices) of a launch."
OF_BANDS, N_POLS = declared(Bands), 2


@dataclass(frozen=True, kw_only=True)
class XServiceSettings:
    """The settings in the file of an X-engine."""

    names: Annotated[tuple[str, ...], Setting("Names, in the order of `feng_id`.", TEXTS, key="antennas")]
    channels: Annotated[int, Setting("Channels of the whole band.", checks.CHANNELS)]
    sample_rate_hz: Annotated[float, header_setting("sample_rate_hz")]
    accumulate: Annotated[int, Setting("Batches in a dump, each with a heap of every antenna.", N_DUMPED)]
    first_channel: Annotated[int, Setting("The first channel of this engine.", FIRST_CHANNEL, "0")] = 0
    n_channels: Annotated[
        int, Setting("Channels of this engine: one of several equal parts of the band.", checks.CHANNELS, "the rest")
    ] = 0
    spectra_per_heap: Annotated[int, OF_BANDS["spectra_per_heap"].setting] = 256
    bits: Annotated[int, OF_BANDS["bits"].setting] = 8
    nibbles: Annotated[str, NIBBLES] = ""
    step: Annotated[int, Setting("Samples from one spectrum to the next.", STEP, "2 `channels`")] = 0
    sync_time_unix: Annotated[Fraction | None, header_setting("sync_time_unix")] = None
    centre_frequency_hz: Annotated[float | None, header_setting("centre_frequency_hz")] = None
    sample_bits: Annotated[int, Setting("Bits of the samples, for files.", checks.sample_bits)] = 10
    batches_per_chunk: Annotated[int, Setting("Batches that go to the device at once.", BATCHES)] = 8
    reorder_s: Annotated[
        float,
        Setting(
            "Seconds that an antenna may be later than others. Everything leaves so much later.",
            checks.within(0, MOST_GAP_S / 2),
        ),
    ] = REORDER_S
    burst: Annotated[
        int | None, Setting("Dumps of a live engine that may wait to be sent.", BATCHES, "those of `reorder_s`")
    ] = None
    patience_s: Annotated[
        float | None,
        Setting(
            "Seconds that others wait, by `tcp`, for an antenna that is gone or silent. Live engines do not wait.",
            schema.as_amount,
            "10 if it has gone, else without end",
        ),
    ] = None
    n_slices: Annotated[int | None, Setting(SLICES, BATCHES, "by expected time", key="slices")] = None
    kept: Annotated[Path | None, KEPT] = None
    path: Path  # the file's
    cores: Annotated[EngineCores, ENGINE_CORES] = field(default_factory=dict)
    places: Annotated[
        ListeningPlace,
        Setting("`listen` has one entry for all antennas; by `tcp` one for each.", ListeningPlace, key="from"),
    ]
    dumps: Annotated[tuple[SendingPlace, ...], Setting("An address or a file each.", SendingPlace, key="to")]

    def __post_init__(self) -> None:
        n, entries = len(self.names), len(self.places.listen)
        first, whole = self.first_channel, self.channels
        n_channels = self.n_channels or whole - first
        if not n or len(set(self.names)) < n:
            raise UsageError("antennas must be a list of one or more names, which differ")
        if n_channels < 1 or first + n_channels > whole or first % n_channels or whole % n_channels:
            own = f"the engine's channels are {first} to {first + n_channels - 1} of {whole}"
            raise UsageError(f"{own}; they must be one of several equal parts of the band")
        if entries not in (1, n):
            raise UsageError(f"[from] listen has {entries} entries: give one for all antennas, or {n}")
        if self.places.transport == "tcp" and entries != n:
            raise UsageError(f"[from] listen has one entry; with tcp each of the {n} antennas needs its own")
        if any(len(place.endpoints) + (place.file is not None) != 1 for place in self.dumps):
            what = "[[to]] must have one address as endpoints, or a file"
            raise UsageError(f"{what}; give each place a [[to]] of its own")
        object.__setattr__(self, "n_channels", n_channels)
        object.__setattr__(self, "step", self.step or 2 * whole)
        self.of_engine  # noqa: B018  # a wrong one is refused at once

    @cached_property
    def of_engine(self) -> XSettings:
        """Returns the engine's settings. Raises UsageError for a wrong one."""
        return x_settings(self.antennas, self.accumulate, self.batches_per_chunk, self.n_slices)

    @cached_property
    def antennas(self) -> tuple[VoltageInfo, ...]:
        """Returns the headers of the antennas' voltages in the channels of this engine."""
        width, centre = self.sample_rate_hz / self.step, self.centre_frequency_hz
        if centre is not None:  # it is the frequency of channel channels / 2 of the whole band
            centre += (self.first_channel + self.n_channels // 2 - self.channels // 2) * width
        nibbles = nibbles_of(self.nibbles, self.bits)
        own = shared(self, VoltageInfo) | {"centre_frequency_hz": centre, "channel_width_hz": width, "nibbles": nibbles}
        of_samples = shared(self, SampleInfo) | {"n_pols": N_POLS, "packet": 1}
        return tuple(
            VoltageInfo(n_pols=N_POLS, samples=SampleInfo(antenna=name, **of_samples), **own) for name in self.names
        )


def x_service_settings(path: Path) -> XServiceSettings:
    """Returns the settings in an X-engine's file. Raises UsageError for a wrong one, in one line."""
    return read_settings(path, "it", XServiceSettings, read_toml(path, MOST_FILE))


class XService(Serving):
    """Makes X-engines one after the other, which continue the same streams; see ``Serving``."""

    counted = (
        *("batches_in", "heaps_missing", "heaps_late", "chunks_dropped", "dumps_out", "dumps_empty", "dumps_dropped"),
        *("dumps_skipped", "saturated", "sink_error"),
    )
    dropped = "dumps_dropped"

    def __init__(self, settings: XServiceSettings, running: Running, tell: Tell) -> None:
        self._settings = settings
        self._info = visibility_info(settings.antennas, settings.accumulate)
        places = replace(settings.places.listening, patience_s=settings.patience_s)
        kept = KeptFile(settings.kept or settings.path.with_suffix(".kept.json"), settings.antennas, at_level(tell))
        super().__init__(places, settings.antennas[0].samples, [settings.dumps], running, tell, kept)
        kept.restore(self._restore)
        n_chunks = 1 + self._source().n_kept(settings.of_engine.chunk_shape)
        self._n_waiting = settings.burst or settings.of_engine.dumps_of(n_chunks)

    def _source(self, **receiving: Any) -> ReceivedVoltages:
        settings, n = self._settings, len(self._settings.antennas)
        return ReceivedVoltages(
            settings.antennas,
            self._places,
            first_channel=settings.first_channel,
            is_live=self._places.is_live,
            n_enders=n,
            n_substreams=n // len(self._places.members),
            reorder_s=settings.reorder_s,
            **receiving,
        )

    def _engine(self, source: Any, sinks: Sequence[VisibilitySink]) -> XEngine:
        return XEngine(
            self._running.backend,
            source,
            sinks[0],
            self._kernels,
            accumulate=self._settings.accumulate,
            batches_per_chunk=self._settings.batches_per_chunk,
            complete_dumps=True,
            n_slices=self._settings.n_slices,
            burst=self._n_waiting,
            cores=self._settings.cores,
        )

    def _sizes(self) -> tuple[tuple[int, ...], float, list[float], int]:
        own, n_bytes = self._settings.of_engine, 4 * prod((self._info.n_channels, self._info.n_baselines, 4, 2))
        seconds = own.batches_per_chunk * own.batch_samples / self.sample_rate_hz
        return own.chunk_shape, seconds, [own.batches_per_chunk / own.accumulate], self._n_waiting * n_bytes

    def _outlet(self, output: int, place: SendingPlace) -> DumpOutlet:
        first, n = self._settings.first_channel, self._settings.channels
        sending = self._sending(place)
        return DumpOutlet(self._info, place.transport, place.endpoints, first_channel=first, n_channels=n, **sending)

    def _file(self, output: int, path: Path) -> VisibilitySink:
        antennas = tuple(map(self._now_of, self._info.antennas))
        return visibility_sink(path, replace(self._info, antennas=antennas), False, self._tell)
