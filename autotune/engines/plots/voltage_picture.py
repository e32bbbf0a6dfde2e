"""The picture of one antenna's voltages: spectra, waterfalls, and power, saturation and missing data over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import UsageError
from .drawing import MISSING, POLS, POWER, FrequencyAxis, TimeAxis, colours, decibels, drawn, range_of, seconds
from .voltage_summary import VoltageSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

UNIT = "dB of one step²"  # a step of the quantiser


def plot_voltages(summary: VoltageSummary, path: str | Path, n_missing: int | None = None) -> None:
    """Writes the picture of a summary; ``drawing.SUFFIXES`` has its formats.

    Args:
        n_missing: heaps that were left out; None counts those missing between the first and the last that came.

    Raises:
        UsageError: as ``drawing.check_path`` does, when the file cannot be written, or when no heap came.
    """
    if not summary.n_heaps:
        raise UsageError(f"{path}: there is nothing to draw, since no heap came")
    n_pols = summary.info.n_pols
    with drawn(path, 3.6 + 4.2 * n_pols, 7.2) as figure:
        _Voltages(summary, figure, n_missing).draw()


class _Voltages:
    def __init__(self, summary: VoltageSummary, figure: "Figure", n_missing: int | None) -> None:
        info = summary.info
        between = int(summary.spectra.units.sum()) - summary.n_heaps
        self._n_missing = between if n_missing is None else n_missing
        self._summary, self._figure = summary, figure
        self._frequencies = FrequencyAxis(info.n_channels, info.centre_frequency_hz, info.channel_width_hz)
        self._row_s = summary.power.row_samples / info.samples.sample_rate_hz
        heap_s = info.heap_samples / info.samples.sample_rate_hz
        self._span_s = float(summary.spectra.units.sum()) * heap_s
        self._time = TimeAxis(self._span_s)

    def draw(self) -> None:
        figure, n = self._figure, self._summary.info.n_pols
        figure.suptitle(self._title(), fontsize=11)
        grid = figure.add_gridspec(2, n + 2, width_ratios=[4] * n + [1.4, 1.4], height_ratios=[1, 2.6])
        power = decibels(self._summary.mean_power())
        limits = range_of(power, 0.5, 98)
        spectra: list[Axes] = []
        waterfalls: list[Axes] = []
        for pol in range(n):
            spectra.append(figure.add_subplot(grid[0, pol], sharey=spectra[0] if pol else None))
            shared = waterfalls[0] if pol else None
            waterfalls.append(figure.add_subplot(grid[1, pol], sharex=spectra[pol], sharey=shared))
            self._spectrum(spectra[pol], pol)
            image = self._waterfall(waterfalls[pol], power[:, :, pol], limits, pol)
        label = f"Power of a channel ({UNIT}); grey: no heap came"
        figure.colorbar(image, ax=waterfalls, location="bottom", shrink=0.6, aspect=50, extend="both", label=label)
        over_time = [figure.add_subplot(grid[1, n + i], sharey=waterfalls[0]) for i in range(2)]
        self._over_time(*over_time)
        legend = figure.add_subplot(grid[0, n:])
        legend.set_axis_off()
        handles = over_time[1].get_legend_handles_labels()
        legend.legend(*handles, loc="center", frameon=False, borderaxespad=0)

    def _title(self) -> str:
        info, summary = self._summary.info, self._summary
        antenna = f" of {info.samples.antenna}" if info.samples.antenna else ""
        n_spectra = int(summary.spectra.values.sum())
        share = summary.saturated.values.sum() / max(1, n_spectra * info.n_channels)
        lost = 1 - n_spectra / (summary.n_heaps * info.spectra_per_heap * info.n_pols)
        holes = f", {100 * lost:.2g} % of the others' spectra missing" if lost else ""
        return (
            f"Voltages{antenna}: {self._frequencies.about}, {info.bits} bits, {seconds(self._span_s)}\n"
            f"{summary.n_heaps} heaps of {info.spectra_per_heap} spectra, {self._n_missing} missing{holes}; "
            f"{100 * share:.2g} % of voltages saturated"
        )

    def _spectrum(self, axes: "Axes", pol: int) -> None:
        channels = np.arange(self._summary.info.n_channels)
        spectrum = decibels(self._summary.mean_spectrum()[:, pol])
        axes.plot(self._frequencies.at(channels), spectrum, color=POLS[pol], lw=0.8, drawstyle="steps-mid")
        axes.set_title(f"Polarisation {self._summary.info.samples.label(pol)}: mean spectrum")
        axes.grid(alpha=0.3)
        axes.tick_params(labelbottom=False, labelleft=pol == 0)
        if pol == 0:
            axes.set_ylabel(f"Power ({UNIT})")

    def _waterfall(self, axes: "Axes", power: np.ndarray, limits: tuple[float, float], pol: int) -> "AxesImage":
        bins = self._summary.bins
        span = (
            *self._frequencies.limits(bins.width * len(bins.begins)),
            0,
            float(self._time.at(len(power) * self._row_s)),
        )
        low, high = limits
        shown: dict[str, Any] = {"cmap": colours(POWER), "vmin": low, "vmax": high, "extent": span}
        image = axes.imshow(power, origin="lower", aspect="auto", **shown)
        self._frequencies.set(axes)
        name = self._summary.info.samples.label(pol)
        axes.set(ylim=(0, float(self._time.at(self._span_s))), title=f"Polarisation {name}: power over time")
        axes.tick_params(labelleft=pol == 0)
        if pol == 0:
            axes.set_ylabel(self._time.label)
        return image

    def _over_time(self, powers: "Axes", losses: "Axes") -> None:
        summary = self._summary
        times = self._time.at((np.arange(summary.power.n) + 0.5) * self._row_s)
        total, n = summary.mean_power(), summary.bins.counts[:, np.newaxis]
        over_band = decibels((total * n).sum(axis=1) / n.sum())
        saturated, missing = 100 * summary.saturated_share(), 1 - summary.present_share()
        edges = self._time.at(np.arange(len(times) + 1) * self._row_s)
        whole: dict[str, Any] = {"transform": losses.get_yaxis_transform(), "step": "post", "color": MISSING, "lw": 0}
        losses.fill_betweenx(edges, 0, np.append(missing, missing[-1:]), label="missing (full width: all)", **whole)
        for pol in range(summary.info.n_pols):
            look: dict[str, Any] = {"color": POLS[pol], "lw": 0.8, "marker": ".", "ms": 3 if len(times) < 64 else 0}
            powers.plot(over_band[:, pol], times, **look)
            losses.plot(saturated[:, pol], times, **look, label=f"polarisation {summary.info.samples.label(pol)}")
        powers.set(xlabel=f"Mean power\n({UNIT})", title="Whole band")
        most = float(np.nanmax(saturated, initial=0.0))
        losses.set(xlabel="Saturated\nvoltages (%)", title="Losses", xlim=(0, 1.1 * most or 1))
        for axes in (powers, losses):
            axes.grid(alpha=0.3)
            axes.locator_params(axis="x", nbins=3)
            axes.tick_params(labelleft=False)
