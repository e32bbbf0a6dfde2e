"""Makes visibilities of several antennas' samples, or of their voltages: from files or arrays, to a file or memory."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..counters import FCounters, XCounters
from ..files.voltages import VoltageFiles
from ..fx_engine import FXEngine
from ..memory import KeptVisibilities
from ..plots.drawing import check_path
from ..plots.visibility_picture import Theory, plot_visibilities
from ..plots.visibility_summary import VisibilitySummary
from ..sky.description import read_sky
from ..sky.expected import Delays, theory_of
from ..stream import VisibilityInfo, VisibilitySink, VoltageInfo, VoltageSource
from ..x_engine import XEngine, visibility_info
from .channelise import voltage_infos
from .inputs import antenna_input, recordings
from .level import told
from .running import Report, Running, Tell, no_report, share_taken
from .settings import Bands
from .sinks import HDF5, Each, undone_on_error, visibility_sink

Engine = FXEngine | XEngine
CHUNK_BYTES = 1 << 28  # of voltages that go to the device together, about


@dataclass(frozen=True)
class Correlated:
    """What ``correlate`` made."""

    info: VisibilityInfo
    counters: XCounters
    f_counters: tuple[FCounters, ...]  # of each antenna, where samples were taken
    path: Path | None  # of the file that was written
    kept: KeptVisibilities | None  # the dumps, where no file was written
    seconds: float
    kernels_idle: float  # share of the time in which the device ran no kernel
    is_stopped: bool  # by Ctrl-C, before the input ended

    @property
    def visibilities(self) -> np.ndarray:
        """Returns int32 [n_dumps, C, n_baselines, 4, 2]."""
        shape = 0, self.info.n_channels, self.info.n_baselines, 4, 2
        return np.stack(self._kept.visibilities) if self._kept.visibilities else np.zeros(shape, np.int32)

    @property
    def timestamps(self) -> np.ndarray:
        """Returns int64 [n_dumps]: the sample at which each dump begins."""
        return np.array(self._kept.timestamps, np.int64)

    @property
    def present(self) -> np.ndarray:
        """Returns bool [n_dumps, n_antennas]: antennas of which nothing was missing."""
        return np.array(self._kept.present, bool).reshape(-1, len(self.info.antennas))

    @property
    def _kept(self) -> KeptVisibilities:
        if self.kept is None:
            raise UsageError(f"the visibilities were written to {self.path}: VisibilityDumps reads them")
        return self.kept


def correlate(
    inputs: Any,
    bands: Bands | int | None = None,
    out: str | Path | None = None,
    *,
    accumulate: int,
    header: Mapping[str, Any] | None = None,
    keep: bool = True,
    plot: str | Path | None = None,
    sky: str | Path | None = None,
    package: str | Path | None = None,
    results: str | Path | None = None,
    tune: str | None = None,
    device: str = "auto",
    chunk: int | None = None,
    tell: Tell = lambda text: None,
    report: Report = no_report,
) -> Correlated:
    """Make visibilities of all pairs of antennas: F-engines and an X-engine, run once; of voltages, an X-engine.

    Args:
        inputs: of each antenna a path of a recording, an array of samples or a ``Source``, as ``channelise`` takes them
            (a folder stands for all recordings in it); or of each antenna a path of voltages, x.h5; or a
            ``VoltageSource``.
        bands: what is made of samples, or only the number of channels; None for voltages. One band.
        out: path of a file, x.h5, x.uvh5 or x.ms.
        keep: whether visibilities stay in memory where no file is written.
        accumulate: batches of a dump; a batch is spectra_per_heap spectra. Dumps start at multiples of their length.
        header: what the headers of all antennas' samples lack.
        plot: path of a picture: spectra, amplitudes and phases of baselines, fringes.
        sky: path of the sky.toml of a simulated recording, whose fringes are drawn beside.
        package, results, tune, device, chunk, tell, report: as in ``Running``.

    Raises:
        UsageError: for what cannot be, in one line; before anything is written, where it can be known then.
    """
    running = Running(package, results, tune, device, chunk, tell, report)
    if accumulate < 1:
        raise UsageError(f"accumulate={accumulate} batches: a dump is made of 1 or more")
    if sky is not None and plot is None:
        raise UsageError("a sky is drawn in a picture: give plot, too")
    picture = None if plot is None else check_path(plot)
    with ExitStack() as stack:
        start = _of_voltages if _are_voltages(inputs) else _of_samples
        begun = start(inputs, bands, accumulate, header or {}, running, stack)
        info = visibility_info(begun.antennas, accumulate)
        summary = None if picture is None else VisibilitySummary(info)
        theory = None if sky is None else _theory(sky, info, begun)
        path = None if out is None else Path(out)
        with undone_on_error(stack, [path]):
            sink = visibility_sink(path, info, keep)
            stack.callback(sink.close)
            engine = begun.engine(sink if summary is None else Each(sink, summary))
        began = time.monotonic()
        engine.run()
        seconds = time.monotonic() - began
    if picture is not None and summary is not None and summary.n_dumps:
        plot_visibilities(summary, picture, theory)
    elif picture is not None:
        tell(f"{picture}: not drawn, since no dump came")
    idle = engine.progress.idle_share()
    kept = sink if isinstance(sink, KeptVisibilities) else None
    f_counters = tuple(engine.f_counters)
    return Correlated(info, engine.counters, f_counters, path, kept, seconds, idle, engine.is_stopped)


@dataclass(frozen=True)
class _Begun:
    """Antennas that were opened, and what makes the engine for them."""

    antennas: Sequence[VoltageInfo]
    engine: Callable[[VisibilitySink], Engine]
    delays: Delays = field(default_factory=dict)  # of each antenna by its name, where samples are taken
    window: int = 0  # samples that a spectrum is made of, where they are known


def _of_samples(
    inputs: Any,
    bands: Bands | int | None,
    threshold: int,
    header: Mapping[str, Any],
    running: Running,
    stack: ExitStack,
) -> _Begun:
    if bands is None:
        raise UsageError("the number of channels must be given for samples")
    bands = bands if isinstance(bands, Bands) else Bands(bands)
    if len(bands.narrow) + (bands.with_whole or not bands.narrow) > 1:
        raise UsageError("one band is correlated at a time: the whole one, or one narrow band")
    given = []
    for number, samples in enumerate(_each(inputs, running.tell)):
        given.append(antenna_input(samples, header, f"m{number:03}"))
        stack.callback(given[-1].source.close)
    infos = [each.info for each in given]
    n_chunk = running.chunk_samples(infos)
    opened = [bands.outputs(each, n_chunk) for each in given]
    outputs = [some[0] for some, _ in opened]
    if levels := [level for _, some in opened for level in some]:
        running.tell(told(levels))
    antennas = [voltage_infos(info, *each)[0] for info, each in zip(infos, opened, strict=True)]
    _must_fill(antennas[0], threshold)
    kernels = running.kernels()

    def engine(sink: VisibilitySink) -> FXEngine:
        def say(line: str) -> None:
            running.report(line, share_taken(infos, made.f_counters))

        sources = [each.source for each in given]
        made = FXEngine(running.backend, sources, outputs, sink, threshold, kernels, n_chunk, report=say)
        return made

    delays = {info.antenna: bands.delays_of(info) for info in infos}
    return _Begun(antennas, engine, delays, outputs[0].settings.window)


def _of_voltages(
    inputs: Any,
    bands: Bands | int | None,
    threshold: int,
    header: Mapping[str, Any],
    running: Running,
    stack: ExitStack,
) -> _Begun:
    if bands is not None or header:
        raise UsageError("voltages have their channels and their header: nothing of samples can be said of them")
    source: VoltageSource = inputs if hasattr(inputs, "antennas") else VoltageFiles(_paths(inputs))
    stack.callback(source.close)
    first = source.antennas[0]
    batch_bytes = len(source.antennas) * int(np.prod(first.heap_shape))
    asked = running.chunk and -(-running.chunk // first.heap_samples)
    per_chunk = asked or max(1, CHUNK_BYTES // batch_bytes)
    kernels = running.kernels()

    def engine(sink: VisibilitySink) -> XEngine:
        def say(line: str) -> None:
            n = source.n_batches if isinstance(source, VoltageFiles) else None
            running.report(line, made.counters.batches_in / n if n else None)

        made = XEngine(running.backend, source, sink, threshold, kernels, per_chunk, report=say)
        return made

    return _Begun(source.antennas, engine)


def _are_voltages(inputs: Any) -> bool:
    if hasattr(inputs, "antennas"):
        return True
    paths = _paths(inputs)
    return bool(paths) and all(isinstance(path, str | Path) and Path(path).suffix in HDF5 for path in paths)


def _paths(inputs: Any) -> list[Any]:
    return [inputs] if isinstance(inputs, str | Path) else list(inputs)


def _each(inputs: Any, tell: Tell) -> list[Any]:
    """Returns the samples of each antenna: paths with folders opened, or what was given."""
    given = _paths(inputs)
    if not given:
        raise UsageError("there are no antennas to correlate")
    return list(recordings(given, tell)) if all(isinstance(each, str | Path) for each in given) else given


def _theory(sky: str | Path, info: VisibilityInfo, begun: _Begun) -> Theory:
    """Returns what a simulated sky's visibilities should be. Raises UsageError for one of voltages."""
    if not begun.window:
        raise UsageError("voltages do not say which delays they were given: a sky is drawn beside samples only")
    return theory_of(read_sky(Path(sky)), info, begun.delays, begun.window)


def _must_fill(antenna: VoltageInfo, threshold: int) -> None:
    """Raises UsageError when the samples are not enough for one dump."""
    n, needed = antenna.samples.n_samples, threshold * antenna.heap_samples
    if n is not None and n < needed:
        raise UsageError(
            f"a dump is {threshold} batches of {antenna.heap_samples} samples, and there are {n} samples: choose fewer "
            "batches (accumulate), channels or spectra_per_heap"
        )
