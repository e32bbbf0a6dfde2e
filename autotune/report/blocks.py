"""The blocks of a page: headings, facts, tables and pictures. They contain plain text, which the page escapes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, ClassVar, TypeVar

PlotlyFigure = dict[str, Any]  # a figure of plotly: data and layout

INK, MUTED, FAINT, GRID = "#1f2328", "#57606a", "#b6bec7", "#e4e8ec"
BLUE, ORANGE, RED, GREEN = "#2563a8", "#d9731a", "#c2302e", "#2a7d46"
UNTRIED = "#cfd4da"  # colour of map cells without a measurement: no colour of SCALE is grey
SCALE = [[0.0, "#eef4fb"], [0.5, "#7fb0de"], [1.0, "#174a80"]]  # from low to high, in one hue
T = TypeVar("T")
MOST_DOTS = 3000  # browsers handle some thousand dots well, and pages stay small
N_BEST = MOST_DOTS // 4
BOX: dict[str, object] = {"line": {"color": MUTED, "width": 1}, "fillcolor": "rgba(0,0,0,0)"}


@dataclass(frozen=True)
class Heading:
    """The heading of a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Fact:
    """A name and its lines of text; ``is_code``: the lines are a config or a command."""

    name: str
    lines: tuple[str, ...]
    is_code: bool = False


@dataclass(frozen=True)
class Facts:
    """A list of facts, one below another."""

    kind: ClassVar[str] = "facts"
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Table:
    """A table with columns and rows of text; cells of the columns in ``code`` are shown as code."""

    kind: ClassVar[str] = "table"
    title: str
    reading: str  # one sentence on how to read it
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    code: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A figure with a title and a sentence on how to read it."""

    kind: ClassVar[str] = "picture"
    title: str
    reading: str
    figure: PlotlyFigure = field(repr=False)


@dataclass(frozen=True)
class Small:
    """One of several small figures, with its name and a note above it."""

    name: str
    note: str
    figure: PlotlyFigure = field(repr=False)


@dataclass(frozen=True)
class Gallery:
    """Small figures with one explanation, side by side if the page is wide enough."""

    kind: ClassVar[str] = "gallery"
    title: str
    reading: str
    pictures: tuple[Small, ...]


PageBlock = Heading | Facts | Table | Picture | Gallery


def figures(blocks: Sequence[PageBlock]) -> list[PlotlyFigure]:
    """Returns all figures in the order in which the page shows them."""
    drawn: list[PlotlyFigure] = []
    for block in blocks:
        if isinstance(block, Picture):
            drawn.append(block.figure)
        elif isinstance(block, Gallery):
            drawn += [picture.figure for picture in block.pictures]
    return drawn


def label(text: object) -> str:
    """Returns text of a record, escaped, since plotly would interpret HTML in labels."""
    return escape(str(text))


def plot_layout(height: int, **more: object) -> dict[str, Any]:
    """Returns the common layout of all figures, with a height in pixels and ``more``."""
    font = {"family": "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", "size": 13, "color": INK}
    shared = {"paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff", "font": font, "hovermode": "closest"}
    margin = {"l": 70, "r": 20, "t": 36, "b": 50}
    legend = {"orientation": "h", "x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}
    return {**shared, "height": height, "margin": margin, "legend": legend, **more}


def axis(title: str = "", **more: object) -> dict[str, object]:
    """Returns an axis with a light grid; ``title`` is escaped."""
    named = {"title": {"text": label(title), "standoff": 8}} if title else {}
    return {**named, "gridcolor": GRID, "zeroline": False, "linecolor": MUTED, "automargin": True, **more}


def log_axis(title: str = "", **more: object) -> dict[str, object]:
    """Returns a logarithmic axis; its labels are complete numbers, not only their last digits."""
    return axis(title, type="log", minorloglabels="complete", exponentformat="none", **more)


def category_axis(n: int, **more: object) -> dict[str, object]:
    """Returns the vertical axis of ``n`` names, the first one on top."""
    return {**axis(type="category", range=[n - 0.5, -0.5]), **more}


def dots(
    x: object, y: object, text: object, marker: Mapping[str, object], hover: str = "%{text}", **more: object
) -> PlotlyFigure:
    """Returns a dot for each point, with its text at the pointer."""
    shown = {"type": "scatter", "mode": "markers", "x": x, "y": y, "text": text, "marker": marker}
    return {**shown, "hovertemplate": f"{hover}<extra></extra>", **more}


def bars(names: object, values: object, text: object, **more: object) -> PlotlyFigure:
    """Returns a horizontal bar for each name, with its text at the end."""
    shown = {"type": "bar", "orientation": "h", "y": names, "x": values, "text": text}
    return {**shown, "textposition": "outside", "cliponaxis": False, "marker": {"color": BLUE}, **more}


def boxes(x: object, y: object, marker: Mapping[str, object], hover: str, **more: object) -> PlotlyFigure:
    """Returns boxes of the middle halves of values, with a dot for each value."""
    shown = {"type": "box", "x": x, "y": y, "boxpoints": "all", "jitter": 0.5, "pointpos": 0, **BOX}
    return {**shown, "marker": marker, "hoveron": "points", "hovertemplate": f"{hover}<extra></extra>", **more}


def natural(value: object) -> tuple[int, float, str]:
    """Returns a sort key that puts numbers before words."""
    return (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, str(value))


def in_unit(value: float, size: float) -> float:
    """Returns a time in a unit of ``size`` seconds, with five digits: a picture cannot show more."""
    return float(f"{value / size:.5g}")


def error_bars(values: Sequence[float], intervals: Sequence[tuple[float, ...]]) -> dict[str, object]:
    """Returns error bars from the low to the high end of each value's interval."""
    pairs = list(zip(values, intervals, strict=True))
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, interval[-1] - value) for value, interval in pairs],
        "arrayminus": [max(0.0, value - interval[0]) for value, interval in pairs],
        "color": MUTED,
        "thickness": 1.5,
    }


def sampled(items: Sequence[T], most: int = MOST_DOTS, n_first: int = 0) -> list[T]:
    """Returns at most ``most`` of the items, in their order: the first ``n_first``, and others evenly spaced."""
    if len(items) <= most:
        return list(items)
    rest, n = items[n_first:], most - n_first
    return [*items[:n_first], *(rest[i * (len(rest) - 1) // (n - 1)] for i in range(n))]


def sampling_text(n: int, what: str = "configs", most: int = MOST_DOTS, best: str = "") -> str:
    """Returns a sentence that says how the drawn configs were chosen; "" if all are drawn."""
    if n <= most:
        return ""
    return f" Of {n} {what}, {most} are drawn: {f'the {N_BEST} {best}, and others ' if best else ''}spaced evenly."
