"""The common parts of pictures: the file, the axes of time and frequency, decibels, phases."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import UsageError
from ...core.files import check_free, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
TICKS = [-180, -90, 0, 90, 180]  # ticks of an axis of phases, in degrees
POWER, PHASE = "viridis", "twilight"  # colour maps: a perceptually uniform one, and a cyclic one for phases
MISSING = "0.8"  # grey, for missing data
POLS = ("#0072b2", "#d55e00")  # for polarisations, safe for colour blindness (M. Okabe, K. Ito, Color Universal Design)
DATES = {".svg": "Date", ".pdf": "CreationDate"}  # metadata that would make each file differ
STYLE: dict[Any, Any] = {"font.size": 9.0, "axes.titlesize": 10.0, "svg.fonttype": "none", "svg.hashsalt": "autotune"}


def check_path(path: str | Path, overwrite: bool = False) -> Path:
    """Returns ``path`` if a picture can be written there. Call it before a long run; ``overwrite``: over an old one.

    Raises:
        UsageError: for a suffix that is not in SUFFIXES, a directory that is missing or not writable, or a file that
            exists, or when matplotlib is not installed.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: a picture's name ends in {', '.join(SUFFIXES)}, not in {path.suffix!r}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no directory {path.parent}; make it, or give another name")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: it cannot be written; give another name")
    check_free(path, overwrite)
    try:
        import matplotlib.figure  # noqa: F401 - this checks that it can be imported
    except ImportError as error:
        raise UsageError(
            f"{path}: pictures need matplotlib ({error}): pip install matplotlib, or autotune's extra plot"
        ) from None
    return path


@contextmanager
def drawn(path: str | Path, width: float, height: float) -> Iterator["Figure"]:
    """Yields a figure of ``width`` by ``height`` inches, and writes it to ``path`` afterwards.

    A user's settings of matplotlib do not change the figure, and stay as they are.

    Raises:
        UsageError: as ``check_path`` does, or when the file cannot be written; an old file stays.
    """
    path = check_path(path, overwrite=True)  # it was free when the run began
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
    """An axis of frequencies in MHz if the band's centre is known, and of channels otherwise."""

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
        """Returns text: the number of channels, and their centre if it is known."""
        centre = f" centred on {self.centre_hz / 1e6:.6g} MHz" if self.is_known and self.centre_hz is not None else ""
        return f"{self.n_channels} channels{centre}"

    def at(self, channels: np.ndarray) -> np.ndarray:
        """Returns the places of channels on the axis."""
        return self.hz(channels) / 1e6 if self.is_known else np.asarray(channels, float)

    def hz(self, channels: np.ndarray) -> np.ndarray:
        """Returns the frequencies of channels, in Hz. If the centre is not known, the band begins at 0."""
        half = self.n_channels / 2
        centre = half * self.width_hz if self.centre_hz is None else self.centre_hz
        return np.asarray(centre + (np.asarray(channels) - half) * self.width_hz)

    def limits(self, n_channels: int | None = None) -> tuple[float, float]:
        """Returns the lower edge of the first channel and the upper edge of the last, of ``n_channels`` or of all."""
        low, high = self.at(np.array([-0.5, (n_channels or self.n_channels) - 0.5])).tolist()
        return low, high

    def set(self, axes: "Axes", label: bool = True, which: str = "x") -> None:
        """Set the limits of an axis, and its label."""
        named: dict[str, object] = {f"{which}lim": self.limits()}
        if label:
            named[f"{which}label"] = self.label
        axes.set(**named)
        if self.is_known:
            axes.ticklabel_format(axis="x" if which == "x" else "y", useOffset=False)
        axes.locator_params(axis="x" if which == "x" else "y", nbins=5)


@dataclass(frozen=True)
class TimeAxis:
    """An axis of times since the start, in a unit that makes the whole span 1 or more."""

    span_s: float

    @property
    def unit(self) -> tuple[float, str]:
        """Returns the unit in seconds, and its name."""
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
    """Returns a time as text, in a suitable unit."""
    scale, name = TimeAxis(value).unit
    return f"{value / scale:.4g} {name}"


# ---------------------------------------------------------------------- values
def decibels(power: np.ndarray) -> np.ndarray:
    """Returns 10 log10 of the power, or NaN where it is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(power > 0, 10 * np.log10(power), np.nan)


def range_of(values: np.ndarray, least: float, most: float) -> tuple[float, float]:
    """Returns two percentiles of the finite values, at least 1 apart."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = np.percentile(finite, [least, most]).tolist()
    return (low, high) if high - low >= 1 else ((low + high - 1) / 2, (low + high + 1) / 2)


def colours(name: str) -> "Colormap":
    """Returns a colour map that shows NaN as grey."""
    import matplotlib

    return matplotlib.colormaps[name].with_extremes(bad=MISSING)


def degrees(values: np.ndarray) -> np.ndarray:
    """Returns phases of complex values in degrees, or NaN where the value is 0."""
    return np.where(values == 0, np.nan, np.degrees(np.angle(values)))


def unbroken(phases: np.ndarray) -> np.ndarray:
    """Returns phases in degrees. A phase after a jump from one end of the circle to the other becomes NaN."""
    jumps = np.abs(np.diff(phases, prepend=phases[:1])) > 180
    return np.where(jumps, np.nan, phases)


def set_phases(axes: "Axes", label: str = "Phase (°)") -> None:
    """Makes the vertical axis one of phases in degrees."""
    axes.set(ylim=(-185, 185), yticks=TICKS, ylabel=label)
    axes.grid(alpha=0.3)
