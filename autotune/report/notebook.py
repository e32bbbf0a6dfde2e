"""The main pictures of a sweep in one figure, for notebooks."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from ..analysis.importance import importances, winners_first
from ..core.errors import UsageError
from ..records.record import SweepRecord
from . import parameters, pictures, roofs
from .blocks import PlotlyFigure, label, plot_layout
from .page import needs_plotly

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROOFLINE = "The roofline"
COLUMNS = ((0.0, 0.43), (0.57, 1.0))  # shares of the width; the labels of the right column are in the gap
ROW = 380  # height of a row, in pixels
TITLE = 40  # height of a picture's title, in pixels


def figure(sweep: SweepRecord) -> "Figure":
    """Returns the known ones of: the final round, the search, the parameters, and the roofline.

    Raises:
        UsageError: without plotly, or when nothing was measured.
    """
    try:
        graphs = import_module("plotly.graph_objects")
    except ImportError as error:
        raise UsageError(needs_plotly()) from error
    winner = sweep.winner.config if sweep.winner else {}
    found = winners_first(importances(sweep.trials), winner)
    lacks = bool(winner) and any(each.share is not None and each.name not in winner for each in found)
    possible = {
        "The final round": pictures.finalists(sweep),
        "The search": pictures.search(sweep),
        f"How much each parameter matters{'; *: the winner lacks it' * lacks}": parameters.importance(found, winner),
        ROOFLINE: roofs.roofline_picture(sweep),
    }
    shown = {name: picture.figure for name, picture in possible.items() if picture is not None}
    if not shown:
        raise UsageError(f"{sweep.path}: no config was measured, so there is nothing to plot")
    return graphs.Figure(_together(sweep.title, shown))


def _together(title: str, shown: Mapping[str, PlotlyFigure]) -> PlotlyFigure:
    """Returns the figures side by side, two in a row."""
    n_rows = (len(shown) + 1) // 2
    height = n_rows * (ROW + TITLE)
    data: list[PlotlyFigure] = []
    axes: dict[str, object] = {}
    notes = []
    for i, (name, figure) in enumerate(shown.items()):
        row, column = divmod(i, 2)
        number, own = str(i + 1) if i else "", figure["layout"]
        top = 1 - row / n_rows
        across, down = COLUMNS[column], [top - (ROW - 60) / height, top]
        axes[f"xaxis{number}"] = {**own["xaxis"], "domain": across, "anchor": f"y{number}"}
        axes[f"yaxis{number}"] = {**own["yaxis"], "domain": down, "anchor": f"x{number}"}
        axes[f"legend{number}"] = _legend(across[name != ROOFLINE], down[1], "left" if name == ROOFLINE else "right")
        place = {"xaxis": f"x{number}", "yaxis": f"y{number}", "legend": f"legend{number}"}
        data += [{**trace, **place, "showlegend": "name" in trace} for trace in figure["data"]]
        notes.append(_note(name, across[0], down[1]))
    margin = {"l": 60, "r": 20, "t": 60 + TITLE, "b": 20}
    heading = {"text": label(title), "x": 0, "xref": "paper", "font": {"size": 15}, "y": 1, "yref": "container"}
    heading |= {"yanchor": "top", "pad": {"t": 12}}
    return {"data": data, "layout": plot_layout(height + 80, **axes, annotations=notes, margin=margin, title=heading)}


def _legend(x: float, y: float, side: str) -> PlotlyFigure:
    """Returns a legend inside a picture, in the upper corner at ``side``."""
    return {"x": x, "y": y, "xanchor": side, "yanchor": "top", "bgcolor": "rgba(255,255,255,0.8)", "font": {"size": 11}}


def _note(text: str, x: float, y: float) -> PlotlyFigure:
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 6}
    return {**place, "text": f"<b>{label(text)}</b>", "showarrow": False, "font": {"size": 13}}
