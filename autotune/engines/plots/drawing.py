"""What pictures have in common: the file, the axes of time and frequency, decibels, phases."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import UsageError
from ...core.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
TICKS = [-180, -90, 0, 90, 180]  # of phases in degrees
POWER, PHASE = "viridis", "twilight"  # colour maps: perceptually uniform, and cyclic as phases are
MISSING = "0.8"  # grey, of what never came
POLS = ("#0072b2", "#d55e00")  # of polarisations, told apart by all eyes (M. Okabe, K. Ito, Color Universal Design)
DATES = {".svg": "Date", ".pdf": "CreationDate"}  # metadata that would make each file another one
STYLE: dict[Any, Any] = {"font.size": 9.0, "axes.titlesize": 10.0, "svg.fonttype": "none", "svg.hashsalt": "autotune"}


def check_path(path: str | Path) -> Path:
    """Returns the path that a picture can be written to. To be asked before a long run.

    Raises:
        UsageError: for a suffix that is not in SUFFIXES, a directory that is not there or not to be written to, or when
            matplotlib is not installed.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a picture's name ends in {', '.join(SUFFIXES)}, not in {path.suffix!r}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.parent}; make it, or give another name")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: it cannot be written; give another name")
    try:
        import matplotlib.figure  # noqa: F401 - whether it can be imported
    except ImportError as error:
        raise UsageError(
            f"{path}: pictures need matplotlib ({error}): pip install matplotlib, or autotune's extra plot"
        ) from None
    return path


@contextmanager
def drawn(path: str | Path, width: float, height: float) -> Iterator["Figure"]:
    """Gives a figure of ``width`` by ``height`` inches, and writes it to ``path`` afterwards.

    What a user has set of matplotlib does not change it, and it changes nothing of that.

    Raises:
        UsageError: as ``check_path`` does, or when the file cannot be written; what was there before stays.
    """
    path = check_path(path)
    import matplotlib
    from matplotlib.figure import Figure

    suffix = path.suffix.lower()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        figure, written = Figure((width, height), dpi=150, layout="constrained"), io.BytesIO()
        yield figure
        metadata = {DATES[suffix]: None} if suffix in DATES else None
        figure.savefig(written, format=suffix[1:], metadata=metadata)
    try:
        write_whole(path, written.getvalue())
    except OSError as error:
        raise UsageError(f"{path}: it cannot be written: {error.strerror}") from None


# ---------------------------------------------------------------------- axes
@dataclass(frozen=True)
class FrequencyAxis:
    """Frequencies in MHz where the band's centre is known, channels otherwise."""

    n_channels: int
    centre_hz: float | None
    width_hz: float

    @property
    def is_known(self) -> bool:
        return self.centre_hz is not None and self.width_hz > 0

    @property
    def label(self) -> str:
        return "Frequency (MHz)" if self.is_known else "Channel"

    @property
    def about(self) -> str:
        """Returns how many channels there are, and where."""
        centre = f" about {self.centre_hz / 1e6:.6g} MHz" if self.is_known and self.centre_hz is not None else ""
        return f"{self.n_channels} channels{centre}"

    def at(self, channels: np.ndarray) -> np.ndarray:
        """Returns the places of channels on the axis."""
        return self.hz(channels) / 1e6 if self.is_known else np.asarray(channels, float)

    def hz(self, channels: np.ndarray) -> np.ndarray:
        """Returns frequencies. Where the centre is not known, the band begins at 0."""
        half = self.n_channels / 2
        centre = half * self.width_hz if self.centre_hz is None else self.centre_hz
        return np.asarray(centre + (np.asarray(channels) - half) * self.width_hz)

    def limits(self, n_channels: int | None = None) -> tuple[float, float]:
        """Returns where the first channel begins and the last one ends, of ``n_channels`` or of all."""
        low, high = self.at(np.array([-0.5, (n_channels or self.n_channels) - 0.5])).tolist()
        return low, high

    def set(self, axes: "Axes", label: bool = True, which: str = "x") -> None:
        """Give an axis its limits, and its name."""
        named: dict[str, object] = {f"{which}lim": self.limits()}
        if label:
            named[f"{which}label"] = self.label
        axes.set(**named)
        if self.is_known:
            axes.ticklabel_format(axis="x" if which == "x" else "y", useOffset=False)
        axes.locator_params(axis="x" if which == "x" else "y", nbins=5)


@dataclass(frozen=True)
class TimeAxis:
    """Times from the start on, in a unit in which the whole span is a number of 1 or more."""

    span_s: float

    @property
    def unit(self) -> tuple[float, str]:
        """Returns seconds of a unit, and its name."""
        for seconds, name in ((1.0, "s"), (1e-3, "ms")):
            if self.span_s >= seconds:
                return seconds, name
        return 1e-6, "µs"

    @property
    def label(self) -> str:
        return f"Time from the start ({self.unit[1]})"

    def at(self, times_s: np.ndarray | float) -> np.ndarray:
        """Returns the places of times on the axis."""
        return np.asarray(times_s) / self.unit[0]


def seconds(value: float) -> str:
    """Returns a time as text, in a unit that suits it."""
    scale, name = TimeAxis(value).unit
    return f"{value / scale:.4g} {name}"


# ---------------------------------------------------------------------- values
def decibels(power: np.ndarray) -> np.ndarray:
    """Returns 10 log10, NaN where there is no power."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(power > 0, 10 * np.log10(power), np.nan)


def range_of(values: np.ndarray, least: float, most: float) -> tuple[float, float]:
    """Returns two percentiles of what is not NaN, at least 1 apart."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 1.0
    low, high = np.percentile(known, [least, most]).tolist()
    return (low, high) if high - low >= 1 else ((low + high - 1) / 2, (low + high + 1) / 2)


def colours(name: str) -> "Colormap":
    """Returns a colour map that has grey for NaN."""
    import matplotlib

    return matplotlib.colormaps[name].with_extremes(bad=MISSING)


def degrees(values: np.ndarray) -> np.ndarray:
    """Returns phases of complex values, NaN where there is nothing to have one."""
    return np.where(values == 0, np.nan, np.degrees(np.angle(values)))


def unbroken(phases: np.ndarray) -> np.ndarray:
    """Returns phases in degrees, with NaN in place of those behind a jump from one end of the circle to the other."""
    jumps = np.abs(np.diff(phases, prepend=phases[:1])) > 180
    return np.where(jumps, np.nan, phases)


def set_phases(axes: "Axes", label: str = "Phase (°)") -> None:
    """Makes the upright axis one of phases in degrees."""
    axes.set(ylim=(-185, 185), yticks=TICKS, ylabel=label)
    axes.grid(alpha=0.3)
