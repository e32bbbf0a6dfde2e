"""Makes visibilities of several antennas' samples or voltages: from files or arrays, to a file or memory."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ...system.setting import settings_given
from ..files.losses import DataLoss, Heard
from ..files.reading import Tell
from ..plots.drawing import check_path
from ..plots.residual_delays import ResidualDelay, residual_delays
from ..plots.visibility_picture import Theory, plot_visibilities
from ..plots.visibility_summary import VisibilitySummary
from ..run.counters import FCounters, XCounters
from ..sky.description import read_sky
from ..sky.expected import theory_of
from ..streams.in_memory import KeptVisibilities
from ..streams.phase_centre import PhaseCentre
from ..streams.visibilities import VisibilityInfo
from ..x.engine import visibility_info
from .antennas import Antennas, are_voltages, of_samples, of_voltages
from .band_settings import Bands
from .dumps import Dumps
from .running import Running
from .sinks import TeeSink, empty_removed, remove, visibility_sink


@dataclass(frozen=True)
class CorrelateResult:
    """The result of ``correlate``."""

    info: VisibilityInfo
    counters: XCounters
    f_counters: tuple[FCounters, ...]  # one for each antenna; none if the input is voltages
    path: Path | None  # the file of the visibilities; it was removed if no dump has data
    kept: KeptVisibilities | None  # the dumps, if they stay in memory
    seconds: float
    kernels_idle: float  # share of the time in which the device ran no kernel
    is_stopped: bool  # Ctrl-C stopped it before the input ended
    residual_delays: tuple[ResidualDelay, ...] = ()  # one for each baseline in the picture; none without a picture
    losses: tuple[DataLoss, ...] = ()  # each is a line about a recording, with its numbers
    has_failed: bool = False  # whether it is strict, and recordings lack data

    @property
    def why_nothing(self) -> str:
        """Returns a sentence that says why no dump has data; empty if one has."""
        if self.counters.dumps_out:
            return ""
        if self.counters.dumps_empty:
            return (
                f"no antenna is whole in any of {self.counters.dumps_empty} dumps, since samples did not come; do not "
                "ask for complete dumps, or choose fewer batches per dump, or fewer spectra per heap"
            )
        if self.heaps_missing:
            lacking = f"and each of {self.heaps_missing} heaps lacks samples"
            return f"no spectrum has all of its samples, {lacking}; choose fewer channels or taps"
        return (
            f"no dump lies within the input: a dump begins at a multiple of {self.info.dump_samples} samples and lasts "
            "as long; choose fewer batches per dump, channels, or spectra per heap"
        )

    @property
    def heaps_missing(self) -> int:
        """Returns the number of heaps, over all antennas, that are missing amid the input."""
        return sum(each.heaps_missing for each in self.f_counters) or self.counters.heaps_missing

    @property
    def share_missing(self) -> float:
        """Returns the share of spectra that the dumps lack, over all of their products."""
        return 1 - self.counters.weight / max(1, self.counters.weight_whole)

    @property
    def visibilities(self) -> np.ndarray:
        """Returns int32 [n_dumps, C, n_baselines, 4, 2]: sums that are not divided by ``weights``."""
        shape = 0, self.info.n_channels, self.info.n_baselines, self.info.n_products, 2
        return (
            np.stack(self._visibilities.visibilities) if self._visibilities.visibilities else np.zeros(shape, np.int32)
        )

    @property
    def timestamps(self) -> np.ndarray:
        """Returns int64 [n_dumps]: the sample at which each dump begins."""
        return np.array(self._visibilities.timestamps, np.int64)

    @property
    def present(self) -> np.ndarray:
        """Returns bool [n_dumps, n_antennas]: whether an antenna has all of its spectra in a dump."""
        return self.info.whole_antennas(self.weights)

    @property
    def weights(self) -> np.ndarray:
        """Returns uint32 [n_dumps, n_baselines, 4]: the number of spectra in the sum of each product."""
        return np.array(self._visibilities.weights, np.uint32).reshape(-1, self.info.n_baselines, self.info.n_products)

    @property
    def _visibilities(self) -> KeptVisibilities:
        if self.kept is None:
            raise UsageError(f"the visibilities were written to {self.path}: VisibilityDumps reads them")
        return self.kept


def correlate(
    inputs: object,
    bands: Bands | int | None = None,
    out: str | Path | None = None,
    *,
    header: Mapping[str, object] | None = None,
    keep: bool = True,
    plot: str | Path | None = None,
    overwrite: bool = False,
    sky: str | Path | None = None,
    phase_centre: PhaseCentre | str | None = None,
    running: Running | None = None,
    **dumps: Any,
) -> CorrelateResult:
    """Make visibilities of all pairs of antennas, with F-engines and an X-engine, or from voltages with an X-engine.

    Args:
        inputs: for each antenna a path of a recording, an array of samples or a ``Source``, as ``channelise`` takes
            them (a folder stands for all recordings in it); or the path of the file of an array, array.toml; or for
            each antenna a path of voltages, x.h5; or a ``VoltageSource``.
        bands: the one band to make of samples, or only the number of channels; None for voltages.
        out: path of a new file, whose suffix chooses the format; docs/engines-files.md lists them.
        keep: whether visibilities stay in memory when no file is written.
        header: fields that the headers of all antennas' samples lack.
        plot: path of a picture: spectra, amplitudes and phases of baselines, fringes.
        overwrite: whether an existing picture is replaced.
        sky: path of the sky.toml of a simulated recording; the picture shows its expected fringes, too.
        phase_centre: the direction whose fringes are stopped, or its right ascension and declination as text
            ("12h29m06.7s +2d03m09s", or degrees). The delays follow from positions and times; ``bands``' delays add to
            them.
        running: the device, the kernels, and the functions that take messages and progress.
        dumps: fields of ``Dumps``: accumulate, which is needed (batches of a dump, each of spectra_per_heap spectra),
            and complete_dumps.

    Raises:
        UsageError: for wrong arguments or files, in one line, and before anything is written if possible.
    """
    running = running or Running()
    wanted = Dumps(**settings_given(Dumps, dumps))
    if sky is not None and plot is None:
        raise UsageError("a sky is drawn in a picture: give plot, too")
    picture = None if plot is None else check_path(plot, overwrite)
    path = None if out is None else Path(out)
    heard = Heard(running.tell)
    with ExitStack() as stack:
        if are_voltages(inputs):
            if phase_centre is not None:
                raise UsageError("voltages are delayed already: only samples can be given a phase centre")
            if bands is not None or header:
                raise UsageError("voltages have their channels and their header: no header can be given for them")
            antennas = of_voltages(inputs, wanted, running, stack)
        else:
            antennas = of_samples(
                inputs,
                bands,
                wanted,
                header or {},
                running,
                stack=stack,
                out=path,
                phase_centre=phase_centre,
                tell=heard,
            )
        info = visibility_info(antennas.infos, wanted.accumulate)
        _tell_polarisations(info, running.tell)
        summary = None if picture is None else VisibilitySummary(info)
        theory = None if sky is None else _theory(sky, info, antennas)
        made: list[XCounters] = []
        with empty_removed(stack, [path], lambda: [each.dumps_out for each in made]):
            sink = visibility_sink(path, info, keep, running.tell)
            stack.callback(sink.close)
            engine = antennas.engine(sink if summary is None else TeeSink(sink, summary))
            made.append(engine.counters)
            began = time.monotonic()
            engine.run()
        seconds = time.monotonic() - began
    if picture is not None and summary is not None and engine.counters.dumps_out:
        plot_visibilities(summary, picture, theory)
    elif picture is not None:
        running.tell(f"{picture}: not drawn, since no dump has data")
    if path is not None and not engine.counters.dumps_out:
        remove(path)  # an empty file would stop the next run, which writes over nothing
    idle = engine.progress.idle_share()
    kept = sink if isinstance(sink, KeptVisibilities) else None
    f_counters = tuple(engine.f_counters)
    left = () if summary is None or not engine.counters.dumps_out else tuple(residual_delays(summary))
    return CorrelateResult(
        info=info,
        counters=engine.counters,
        f_counters=f_counters,
        path=path,
        kept=kept,
        seconds=seconds,
        kernels_idle=idle,
        is_stopped=engine.is_stopped,
        residual_delays=left,
        losses=tuple(heard.losses),
        has_failed=running.fails(heard.losses),
    )


def _tell_polarisations(info: VisibilityInfo, tell: Tell) -> None:
    """Passes lines to ``tell`` about antennas whose polarisations nothing names beside others, and about mixed ones."""
    names = [each.antenna or str(number) for number, each in enumerate(info.antennas)]
    each = ", ".join(map(" ".join, zip(names, info.bases, strict=True)))
    nameless = [name for name, one in zip(names, info.antennas, strict=True) if not one.polarisations]
    if 0 < len(nameless) < len(names):
        tell(f"nothing says the polarisations of {', '.join(nameless)}; they are taken as those of others: {each}")
    if len(set(info.bases)) > 1:
        tell(f"polarisations are not of one kind ({each}): products of two kinds are made as they are, such as XR")


def _theory(sky: str | Path, info: VisibilityInfo, antennas: Antennas) -> Theory:
    """Returns the visibilities that a simulated sky should give. Raises UsageError for voltages."""
    if not antennas.window:
        raise UsageError("voltages do not say which delays they were given: a sky is drawn beside samples only")
    return theory_of(read_sky(Path(sky)), info, antennas.delays, antennas.window)
