"""The picture of visibilities: autocorrelations, coherence, and baselines by frequency and by time.

Phases and amplitudes are those of correlation coefficients of one polarisation. Theory, if given, is drawn as lines
next to the measured points.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...core.errors import UsageError
from .drawing import (
    PHASE,
    POWER,
    TICKS,
    FrequencyAxis,
    TimeAxis,
    colours,
    decibels,
    degrees,
    drawn,
    seconds,
    set_phases,
    unbroken,
)
from .visibility_summary import Baseline, VisibilitySummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COLUMNS = 3  # columns of baselines
BANDS, BAND_COLOURS = 3, ("#0072b2", "#009e73", "#d55e00")  # frequency bands whose phases over time are shown
MOST_NAMED = 12  # antennas or baselines that a legend names
MOST_TURN = np.pi / 4  # a phase may turn about so far within a band
LABELLED = 16  # a matrix of up to so many antennas has a tick for each


class Theory(Protocol):
    """A function that computes the expected visibilities: ``engines.sky.expected.theory_of`` returns one."""

    def __call__(
        self,
        i: int,
        j: int,
        times_s: np.ndarray,
        frequencies_hz: np.ndarray,
        *,
        pol: int,
        integration_s: float,
        width_hz: float,
    ) -> np.ndarray:
        """Returns complex correlation coefficients of antennas i and j, [n_times, n_frequencies].

        ``times_s`` are seconds since the stream's zero, and coefficients are means over ``integration_s`` about them,
        and over ``width_hz``.
        """


def plot_visibilities(summary: VisibilitySummary, path: str | Path, theory: Theory | None = None, pol: int = 0) -> None:
    """Writes the picture of a summary; ``drawing.SUFFIXES`` has its formats.

    Args:
        theory: the expected visibilities, drawn as lines.
        pol: the polarisation of the baselines' products: 0 for aa, 1 for bb.

    Raises:
        UsageError: as ``drawing.check_path`` does; when the file cannot be written, or no dump came; for another
            polarisation, or theory without a channel width.
    """
    if pol not in range(summary.info.n_pols):
        raise UsageError(f"there is no polarisation {pol}: it must be {' or '.join('01'[: summary.info.n_pols])}")
    if not summary.n_dumps:
        raise UsageError(f"{path}: there is nothing to draw, since no dump came")
    if theory is not None and summary.info.channel_width_hz <= 0:
        raise UsageError(f"{path}: theory needs channel_width_hz, which the visibilities do not state")
    n_rows = -(-len(summary.baselines) // COLUMNS)
    with drawn(path, 13, 7.2 + 3.6 * n_rows) as figure:
        _Visibilities(summary, figure, theory, pol).draw(n_rows)


class _Visibilities:
    def __init__(self, summary: VisibilitySummary, figure: "Figure", theory: Theory | None, pol: int) -> None:
        info = summary.info
        self._summary, self._figure, self._theory, self._pol = summary, figure, theory, pol
        self._rate = info.antennas[0].sample_rate_hz
        self._frequencies = FrequencyAxis(info.n_channels, info.centre_frequency_hz, info.channel_width_hz)
        self._dump_s, self._row_s = info.dump_samples / self._rate, summary.row_samples / self._rate
        self._span_s = float(summary.dumps.units.sum()) * self._dump_s
        self._time = TimeAxis(self._span_s)
        self._coefficients, self._rows = summary.coefficients()[:, :, pol], summary.rows()[:, :, :, pol]
        self._labels = [info.label(each) for each in range(info.n_pols)]
        self._names = [each.antenna or str(number) for number, each in enumerate(info.antennas)]

    def draw(self, n_rows: int) -> None:
        heights = [3.4, 3.0, *([0.5 + 3.4 * n_rows] if n_rows else [])]
        self._figure.suptitle(self._title(), fontsize=11)
        parts: Any = self._figure.subfigures(len(heights), 1, height_ratios=heights)
        axes = parts[0].subplots(1, 2, width_ratios=[2.2, 1])
        self._autocorrelations(axes[0])
        self._matrix(axes[1], parts[0])
        self._by_frequency(*parts[1].subplots(1, 2))
        if n_rows:
            self._by_time(parts[2], n_rows)

    def _title(self) -> str:
        summary = self._summary
        lost = int(summary.dumps.units.sum()) - summary.n_dumps
        n = len(self._names)
        whole = sum(len(each.places) for each in summary.info.antennas) * summary.n_dumps * summary.info.dump_spectra
        gone = whole - int(summary.spectra_there.sum())
        absent = f"; {100 * gone / max(1, whole):.3g} % of the antennas' spectra missing" if gone else ""
        clipped = f"; {summary.n_clipped} products clipped" if summary.n_clipped else ""
        return (
            f"Visibilities of {n} antennas: {self._frequencies.about}, {seconds(self._span_s)}\n"
            f"{summary.n_dumps} dumps of {seconds(self._dump_s)}, {lost} missing{absent}{clipped}"
        )

    # ------------------------------------------------------------------ antennas
    def _autocorrelations(self, axes: "Axes") -> None:
        powers, x = decibels(self._summary.spectra()), self._frequencies.at(self._summary.fine.middles)
        few = len(self._names) <= MOST_NAMED
        for antenna, colour in enumerate(_along(POWER, len(self._names))):
            for pol, line in enumerate(("-", ":")):
                label = self._names[antenna] if few and not pol else None
                look: dict[str, Any] = {"color": colour, "lw": 0.9, "alpha": 1 if few else 0.4, "label": label}
                axes.plot(x, powers[:, antenna, pol], line, marker="." if len(x) == 1 else "", **look)
        looks = zip(self._labels, ("solid", "dotted"), strict=False)
        title = f"Autocorrelations: mean power of an antenna ({', '.join(map(' '.join, looks))})"
        axes.set(title=title, ylabel="Power in a dump (dB of one step²)")
        self._frequencies.set(axes)
        axes.grid(alpha=0.3)
        if few:
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)

    def _matrix(self, axes: "Axes", figure: "SubFigure") -> None:
        coherence, n, floor = self._summary.coherence(), len(self._names), self._summary.noise_floor()
        high = float(np.nanmax(coherence, initial=1e-3))
        image = axes.imshow(coherence, cmap=colours(POWER), vmin=0, vmax=high, interpolation="nearest")
        bar = figure.colorbar(image, ax=axes, label="rms of |coefficient|")
        if floor is not None and floor < high:
            bar.ax.axhline(floor, color="white", lw=1.5)
        noise = f"; noise alone: {floor:.2g}" if floor is not None else ""
        sides = ", ".join(map(" ".join, zip(("below the diagonal", "above it"), self._labels, strict=False)))
        axes.set_title(f"Coherence of antennas{noise}\n({sides})")
        if n <= LABELLED:
            axes.set_xticks(range(n), self._names, rotation=90, fontsize=8)
            axes.set_yticks(range(n), self._names, fontsize=8)
        else:
            axes.set(xlabel="Antenna", ylabel="Antenna")

    # ------------------------------------------------------------------ baselines, by frequency
    def _by_frequency(self, amplitudes: "Axes", phases: "Axes") -> None:
        summary, fine = self._summary, self._summary.fine
        x = self._frequencies.at(fine.middles)
        look: dict[str, Any] = {"ls": "", "marker": ".", "ms": 3 if len(x) <= 300 else 1.5, "alpha": 0.8}
        for number, colour in enumerate(_along(POWER, len(summary.baselines))):
            coefficients, baseline = self._coefficients[:, number], summary.baselines[number]
            label = self._label(baseline) if len(summary.baselines) <= MOST_NAMED else None
            amplitudes.plot(x, np.abs(coefficients), color=colour, label=label, **look)
            phases.plot(x, degrees(coefficients), color=colour, **look)
            if self._theory is not None:
                expected = self._over_all_time(self._theory, number)
                amplitudes.plot(x, np.abs(expected), color=colour, lw=0.9)
                phases.plot(x, unbroken(degrees(expected)), color=colour, lw=0.9)
        line = "; lines: theory" if self._theory is not None else ""
        of_all = f"Baselines, {self._labels[self._pol]}, mean over all time"
        amplitudes.set(title=f"{of_all}: amplitude{line}", ylabel="|Correlation coefficient|")
        amplitudes.set_ylim(bottom=0)
        phases.set_title(f"{of_all}: phase{line}")
        set_phases(phases)
        amplitudes.grid(alpha=0.3)
        for axes in (amplitudes, phases):
            self._frequencies.set(axes)
        if 0 < len(summary.baselines) <= MOST_NAMED:
            phases.legend(
                *amplitudes.get_legend_handles_labels(), loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8
            )
            legend = phases.get_legend()
            assert legend is not None
            legend.set_frame_on(False)

    def _over_all_time(self, theory: Theory, number: int) -> np.ndarray:
        """Returns theory's mean over all rows of a baseline: complex128 [n_fine]."""
        weights = self._summary.weights.values[:, number, self._pol, 0]
        expected = self._expected(theory, number, self._summary.fine.middles, self._summary.fine.width)
        return np.asarray(weights @ expected / max(1, weights.sum()))

    def _expected(self, theory: Theory, number: int, channels: np.ndarray, width: float) -> np.ndarray:
        """Returns theory for each row of time, as means over ``width`` channels: complex128 [n_rows, n]."""
        baseline, summary = self._summary.baselines[number], self._summary
        return theory(
            baseline.i,
            baseline.j,
            summary.times / self._rate,
            self._frequencies.hz(channels),
            pol=self._pol,
            integration_s=self._row_s,
            width_hz=width * summary.info.channel_width_hz,
        )

    # ------------------------------------------------------------------ baselines, by time
    def _by_time(self, figure: "SubFigure", n_rows: int) -> None:
        """Draws each baseline's phases over time and frequency, and below them the phases of some bands over time."""
        n, bins = len(self._summary.baselines), self._summary.bins
        grid = figure.add_gridspec(2 * n_rows, COLUMNS, height_ratios=[1.4, 1] * n_rows)
        right = float(self._time.at(len(self._rows) * self._row_s))
        span = 0.0, right, *self._frequencies.limits(bins.width * len(bins.begins))
        shown: dict[str, Any] = {"cmap": colours(PHASE), "vmin": -180, "vmax": 180, "extent": span}
        every = []
        for number, baseline in enumerate(self._summary.baselines):
            row, column = divmod(number, COLUMNS)
            waterfall = figure.add_subplot(grid[2 * row, column])
            fringes = figure.add_subplot(grid[2 * row + 1, column], sharex=waterfall)
            phases = degrees(self._rows[:, :, number]).T
            image = waterfall.imshow(phases, origin="lower", aspect="auto", interpolation="none", **shown)
            self._frequencies.set(waterfall, label=column == 0, which="y")
            waterfall.set(title=f"Phase of {self._label(baseline)}", xlim=(0, float(self._time.at(self._span_s))))
            waterfall.tick_params(labelbottom=False)
            for place, colour in self._fringes(fringes, number):
                look: dict[str, Any] = {"transform": waterfall.get_yaxis_transform(), "clip_on": False}
                waterfall.plot(1.015, place, marker="<", ms=6, color=colour, **look)
            set_phases(fringes, "Phase (°)" if column == 0 else "")
            fringes.set_xlabel(self._time.label if number + COLUMNS >= n else "")
            every += [waterfall, fringes]
        line = "; lines: theory" if self._theory is not None else ""
        bar = figure.colorbar(image, ax=every, location="bottom", ticks=TICKS, shrink=0.5, aspect=60)
        bar.set_label(f"Phase (°); grey: missing. Below each waterfall: phases of the bands at its marks{line}")

    def _fringes(self, axes: "Axes", number: int) -> Iterator[tuple[float, str]]:
        """Draws phases of some bands over time. Yields each band's place on the frequency axis, and its colour."""
        coefficients = self._rows[:, :, number]
        times = self._time.at((np.arange(len(coefficients)) + 0.5) * self._row_s)
        n_together = _bins_together(coefficients)
        begins = np.linspace(
            0, coefficients.shape[1] - n_together, min(BANDS, coefficients.shape[1] // n_together) + 2
        )[1:-1]
        for begin, colour in zip(begins.round().astype(int).tolist(), BAND_COLOURS, strict=False):
            band = slice(begin, begin + n_together)
            middle = self._summary.bins.middles[band].mean(keepdims=True)
            phases = degrees(coefficients[:, band].mean(axis=1))
            axes.plot(times, phases, ".", color=colour, ms=3, alpha=0.8)
            if self._theory is not None:
                width = n_together * self._summary.bins.width
                expected = self._expected(self._theory, number, middle, width)[:, 0]
                axes.plot(times, unbroken(degrees(expected)), color=colour, lw=1)
            yield float(self._frequencies.at(middle)[0]), colour

    def _label(self, baseline: Baseline) -> str:
        length = "" if baseline.length_m is None else f", {baseline.length_m:.4g} m"
        return f"{self._names[baseline.i]} - {self._names[baseline.j]}{length}"


def _bins_together(coefficients: np.ndarray) -> int:
    """Returns the number of neighbouring bins of coefficients [n_rows, n_bins] with about one phase: a quarter at most.

    The phase's slope comes from products of neighbouring bins, whose noise is independent.
    """
    products = coefficients[:, 1:] * coefficients[:, :-1].conj()
    slope = abs(np.angle(np.nansum(products))) if products.size else 0.0
    most = max(1, coefficients.shape[1] // (BANDS + 1))
    return int(min(most, max(1, MOST_TURN // slope))) if slope else most


def _along(name: str, n: int) -> list[object]:
    """Returns n colours along a colour map, without its lightest colours."""
    import matplotlib

    return [matplotlib.colormaps[name](0.9 * k / max(1, n - 1)) for k in range(n)]
