"""Opens the antennas of a correlation, by their samples or by their voltages, and makes the engine for them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..files import formats
from ..files.formats.interface import VOLTAGES, VoltageFormat
from ..files.reading import Tell
from ..fx.engine import FXEngine
from ..sky.expected import DelaysByAntenna
from ..streams.phase_centre import PhaseCentre
from ..streams.visibilities import VisibilitySink
from ..streams.voltages import VoltageInfo, VoltageSource
from ..x.engine import XEngine
from .array_inputs import needs_of, open_antennas
from .band_settings import Bands
from .channelise import voltage_infos
from .dumps import Dumps
from .level import level_text
from .pointing import pointed
from .running import Running, share_taken
from .station_clock import stations

Correlating = FXEngine | XEngine  # an engine that makes visibilities
CHUNK_BYTES = 1 << 28  # about so many bytes of voltages go to the device together


@dataclass(frozen=True)
class Antennas:
    """Antennas that were opened, and the function that makes an engine for them."""

    infos: Sequence[VoltageInfo]
    engine: Callable[[VisibilitySink], Correlating]
    delays: DelaysByAntenna = field(default_factory=dict)  # the models of each antenna, by its name; empty for voltages
    window: int = 0  # input samples of one spectrum; 0 for voltages, which do not say


def of_samples(
    inputs: object,
    bands: Bands | int | None,
    dumps: Dumps,
    header: Mapping[str, object],
    running: Running,
    stack: ExitStack,
    out: Path | None = None,
    phase_centre: PhaseCentre | str | None = None,
    tell: Tell | None = None,
) -> Antennas:
    """Opens recordings, the file of an array, arrays of samples, or sources. ``stack`` closes them.

    Args:
        out: the file for the visibilities. Its format may need header fields that the samples lack.
        phase_centre: the direction whose fringes are stopped; None takes the one in the file of an array.
        tell: takes lines about recordings, and what they lack; None: ``running.tell``.

    Raises:
        UsageError: when there are no antennas, their samples do not fill a dump, ``bands`` is not exactly one band, or
            ``pointed`` refuses the phase centre.
    """
    if bands is None:
        raise UsageError("the number of channels must be given for samples")
    bands = bands if isinstance(bands, Bands) else Bands(bands)
    if len(bands.narrow) + (bands.with_whole or not bands.narrow) > 1:
        raise UsageError("one band is correlated at a time: the whole one, or one narrow band")
    opened_antennas = open_antennas(inputs, bands, header, needs_of(out), tell or running.tell, stack)
    bands = opened_antennas.bands
    aligned = stations(opened_antennas.inputs, running.tell)
    recorded = [each.input for each in aligned]
    infos = [each.info for each in recorded]
    n_chunk = running.chunk_samples(infos)
    each_bands = [bands] * len(infos)
    if (towards := phase_centre or opened_antennas.phase_centre) is not None:
        each_bands = pointed(bands, infos, towards, running.tell)
    chunks = [round(n_chunk * info.sample_rate_hz / infos[0].sample_rate_hz) for info in infos]
    opened = [some.outputs(each.input, n) for some, each, n in zip(each_bands, aligned, chunks, strict=True)]
    for station, (some, _) in zip(aligned, opened, strict=True):
        some[0].delays = station.on_time(some[0].delays)
    outputs = [some[0] for some, _ in opened]
    if levels := [level for _, some in opened for level in some]:
        running.tell(level_text(levels))
    antennas = [voltage_infos(info, some, *each)[0] for info, some, each in zip(infos, each_bands, opened, strict=True)]
    _must_fill(antennas, dumps.accumulate)
    kernels = running.kernels()

    def engine(sink: VisibilitySink) -> FXEngine:
        def say(line: str) -> None:
            running.report(line, share_taken([each.n_to_read for each in recorded], fx_engine.f_counters))

        sources = [each.input.source for each in aligned]
        fx_engine = FXEngine(
            running.backend,
            sources,
            outputs,
            sink,
            kernels,
            accumulate=dumps.accumulate,
            chunk_samples=n_chunk,
            complete_dumps=dumps.complete_dumps,
            report=say,
        )
        return fx_engine

    delays = {info.antenna: some.delays_of(info) for info, some in zip(infos, each_bands, strict=True)}
    return Antennas(antennas, engine, delays, outputs[0].settings.window)


def of_voltages(inputs: Any, dumps: Dumps, running: Running, stack: ExitStack) -> Antennas:
    """Opens files of voltages, or takes a ``VoltageSource``. ``stack`` closes them."""
    source: VoltageSource = inputs if hasattr(inputs, "antennas") else _opened(_paths(inputs))
    stack.callback(source.close)
    first = source.antennas[0]
    batch_bytes = len(source.antennas) * int(np.prod(first.heap_shape))
    wanted_batches = running.chunk and -(-running.chunk // first.heap_samples)
    per_chunk = wanted_batches or max(1, CHUNK_BYTES // batch_bytes)
    kernels = running.kernels()

    def engine(sink: VisibilitySink) -> XEngine:
        def say(line: str) -> None:
            n = getattr(source, "n_batches", None)  # a source that has an end may say it
            running.report(line, x_engine.counters.batches_in / n if n else None)

        x_engine = XEngine(
            running.backend,
            source,
            sink,
            kernels,
            accumulate=dumps.accumulate,
            batches_per_chunk=per_chunk,
            complete_dumps=dumps.complete_dumps,
            report=say,
        )
        return x_engine

    return Antennas(source.antennas, engine)


def are_voltages(inputs: object) -> bool:
    """Returns whether the inputs are voltages: a ``VoltageSource``, or files that all have a suffix of voltages."""
    if hasattr(inputs, "antennas"):
        return True
    paths = _paths(inputs)
    return bool(paths) and all(isinstance(path, str | Path) and _reader(path) is not None for path in paths)


def _reader(path: str | Path) -> VoltageFormat | None:
    """Returns the format of a file of voltages, or None for another file."""
    reader: VoltageFormat | None = formats.find(Path(path).suffix, VOLTAGES, "read")
    return reader


def _opened(paths: Sequence[Any]) -> VoltageSource:
    """Opens files of voltages. Raises UsageError when their formats differ."""
    readers = {reader.help: reader for path in paths if (reader := _reader(path)) is not None}
    if len(readers) > 1:
        raise UsageError(f"voltages of {' and of '.join(readers)} cannot be correlated with each other: convert some")
    (reader,) = readers.values()
    return reader.read([Path(path) for path in paths])


def _paths(inputs: Any) -> list[Any]:
    return [inputs] if isinstance(inputs, str | Path) else list(inputs)


def _must_fill(antennas: Sequence[VoltageInfo], n_batches: int) -> None:
    """Raises UsageError when no antenna has samples for one dump."""
    counts = [(n / each.heap_samples, n, each) for each in antennas if (n := each.samples.n_samples) is not None]
    if len(counts) == len(antennas) and (longest := max(counts, key=lambda count: count[0]))[0] < n_batches:
        _, n, antenna = longest
        raise UsageError(
            f"accumulate={n_batches} batches of {antenna.heap_samples} samples are more than the {n} "
            "samples that there are: choose fewer batches, channels, or spectra of a heap"
        )
