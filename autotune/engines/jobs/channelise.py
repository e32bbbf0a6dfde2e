"""Makes voltages of one antenna's samples: from a recording or an array, to files or memory."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...core.errors import UsageError
from ..f.chain import Output, bank, voltage_info
from ..f.engine import FEngine
from ..files import formats
from ..files.formats.interface import VOLTAGES
from ..files.losses import DataLoss, Heard
from ..plots.drawing import check_path
from ..plots.voltage_picture import plot_voltages
from ..plots.voltage_summary import VoltageSummary
from ..run.counters import FCounters
from ..streams.in_memory import KeptVoltages
from ..streams.samples import SampleInfo
from ..streams.voltages import VoltageInfo
from .band_settings import Bands, heap_samples
from .inputs import antenna_input
from .level import Level, level_text
from .running import Running, share_taken
from .sinks import TeeSink, empty_removed, kept, remove, voltage_sink


@dataclass(frozen=True)
class BandResult:
    """The voltages of one band."""

    info: VoltageInfo
    counters: FCounters
    path: Path | None  # the file of the voltages; it was removed if no heap came
    kept: KeptVoltages | None  # the voltages, if they stay in memory

    @property
    def why_nothing(self) -> str:
        """Returns a sentence that says why no heap came; empty if one did."""
        counted, info = self.counters, self.info
        if counted.heaps_out:
            return ""
        if counted.heaps_missing:
            lost = f"{counted.packets_missing} packets of {info.samples.packet} samples did not come"
            return f"no spectrum is whole: {lost}, and each of {counted.heaps_missing} heaps lacks some of them"
        return (
            f"no heap lies within the {counted.samples_in} samples that were read: a heap begins at a multiple of "
            f"{info.heap_samples} samples and needs more than that; choose fewer channels or spectra per heap"
        )


@dataclass(frozen=True)
class ChanneliseResult:
    """The result of ``channelise``: its bands, the whole one first. The arrays belong to the first band."""

    bands: tuple[BandResult, ...]
    seconds: float
    kernels_idle: float  # share of the time in which the device ran no kernel
    is_stopped: bool  # Ctrl-C stopped it before the samples ended
    losses: tuple[DataLoss, ...] = ()  # each is a line about the recording, with its numbers
    has_failed: bool = False  # whether it is strict, and the recording lacks data

    @property
    def voltages(self) -> np.ndarray:
        """Returns int8 [n_heaps, C, spectra_per_heap, n_pols, 2]; 4-bit voltages lack the last axis."""
        return self._voltages.voltages

    @property
    def timestamps(self) -> np.ndarray:
        """Returns int64 [n_heaps]: the sample at which each heap begins."""
        return self._voltages.timestamps

    @property
    def present(self) -> np.ndarray:
        """Returns bool [n_heaps, spectra_per_heap, n_pols]: the spectra that came. Voltages of the others are 0."""
        return self._voltages.present

    @property
    def saturated(self) -> np.ndarray:
        """Returns uint32 [n_heaps, n_pols]: the number of clipped voltages."""
        return self._voltages.saturated

    @property
    def _voltages(self) -> KeptVoltages:
        kept = self.bands[0].kept
        if kept is None:
            raise UsageError(f"the voltages were written to {self.bands[0].path}: VoltageFiles reads them")
        return kept


def channelise(
    samples: object,
    bands: Bands | int,
    out: str | Path | None = None,
    *,
    header: Mapping[str, object] | None = None,
    keep: bool = True,
    plot: str | Path | None = None,
    overwrite: bool = False,
    running: Running | None = None,
) -> ChanneliseResult:
    """Filter, transform, delay and quantise the samples of one antenna: an F-engine, run once.

    Args:
        samples: path of a recording, in a format that docs/engines-files.md lists; an array of samples,
            int8, int16 or complex64, [n] or [n_pols, n]; or a ``Source``.
        bands: the bands to make, or only the number of channels.
        out: path of a new file, x.h5. With several bands, each narrow one goes to its own file, x-narrow1.h5 and so on.
        keep: whether voltages stay in memory when no file is written; otherwise they are only counted and drawn.
        header: fields that the samples' header lacks: sample_rate_hz, antenna, position_m, centre_frequency_hz and
            others.
        plot: path of a picture of the first band: spectrum and waterfall.
        overwrite: whether an existing picture is replaced.
        running: the device, the kernels, and the functions that take messages and progress.

    Raises:
        UsageError: for wrong arguments or files, in one line, and before anything is written if possible.
    """
    running = running or Running()
    bands = bands if isinstance(bands, Bands) else Bands(bands)
    picture = None if plot is None else check_path(plot, overwrite)
    if out is not None and getattr(formats.for_new(Path(out), VOLTAGES), "whole_heaps", False):
        bands = replace(bands, whole_heaps=True)
    heard = Heard(running.tell)
    with ExitStack() as stack:
        opened = antenna_input(samples, header or {}, tell=heard)
        stack.callback(opened.source.close)
        info = opened.info
        n_chunk = running.chunk_samples([info])
        outputs, levels = bands.outputs(opened, n_chunk)
        must_fill(info, outputs)
        for level in levels:
            running.tell(level_text([level]))
        infos = voltage_infos(info, bands, outputs, levels)
        paths = paths_of(None if out is None else Path(out), bands, len(outputs))
        kernels = running.kernels()
        summary = None if picture is None else VoltageSummary(infos[0])
        counters: list[FCounters] = []

        def say(line: str) -> None:
            running.report(line, share_taken([info.n_samples], counters[:1]))

        with empty_removed(stack, paths, lambda: [each.heaps_out for each in counters]):
            sinks = [voltage_sink(path, each, keep, running.tell) for path, each in zip(paths, infos, strict=True)]
            for output, sink in zip(outputs, sinks, strict=True):
                stack.callback(sink.close)
                output.sink = sink
            if summary is not None:
                outputs[0].sink = TeeSink(sinks[0], summary)
            n_packets = max(1, n_chunk // info.packet)
            engine = FEngine(running.backend, opened.source, outputs, n_packets, kernels, report=say)
            counters += engine.counters
            began = time.monotonic()
            engine.run()
        seconds = time.monotonic() - began
    if picture is not None and summary is not None and counters[0].heaps_out:
        plot_voltages(summary, picture, counters[0].heaps_missing)
    elif picture is not None:
        running.tell(f"{picture}: not drawn, since no heap came")
    for counted, path in zip(counters, paths, strict=True):
        if path is not None and not counted.heaps_out:
            remove(path)  # an empty file would stop the next run, which writes over nothing
    results = tuple(BandResult(*each) for each in zip(infos, counters, paths, map(kept, sinks), strict=True))
    idle, losses = engine.progress.idle_share(), tuple(heard.losses)
    return ChanneliseResult(results, seconds, idle, engine.is_stopped, losses, running.fails(losses))


def voltage_infos(
    info: SampleInfo, bands: Bands, outputs: Sequence[Output], levels: Sequence[Level]
) -> list[VoltageInfo]:
    """Returns the header of each output's voltages."""
    headers = [voltage_info(info, output.settings) for output in outputs]
    is_delayed, centre = bands.delays is not None, bands.direction()
    infos = [replace(each, is_delayed=is_delayed, phase_centre=centre) for each in headers]
    if not levels:
        return infos
    return [replace(header, gain=tuple(level.gains.tolist())) for header, level in zip(infos, levels, strict=True)]


def paths_of(out: Path | None, bands: Bands, n: int) -> list[Path | None]:
    """Returns the file of each of ``n`` bands. With several bands, each narrow one gets its own file."""
    if out is None or n == 1:
        return [out] * n
    narrow = [out.with_stem(f"{out.stem}-narrow{number}") for number in range(1, len(bands.narrow) + 1)]
    return [out, *narrow] if bands.with_whole else list(narrow)


def must_fill(info: SampleInfo, outputs: Sequence[Output]) -> None:
    """Raises UsageError when the samples are not enough for one heap of each band."""
    for output in outputs:
        needed = heap_samples(output.settings)
        if info.n_samples is not None and info.n_samples < needed:
            raise UsageError(
                f"spectra_per_heap={bank(output.settings).spectra_per_heap} spectra need {needed} samples, more than "
                f"the {info.n_samples} of each polarisation: choose fewer spectra per heap, or fewer channels"
            )
