"""Maps of efficiency over two fields of the problems, which a menu selects."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median

from ..core.config import Value
from .blocks import SCALE, UNTRIED, Picture, PlotlyFigure, axis, label, natural, plot_layout

MappedProblem = tuple[Mapping[str, Value], float, str]  # a problem's fields, its efficiency, and its hover text


def efficiency(problems: Sequence[MappedProblem]) -> Picture | None:
    """Shows the efficiency over each pair of fields, first over the pair that distinguishes the most problems.

    None if fewer than two fields vary.
    """
    values = {name: _values(problems, name) for name in dict.fromkeys(n for fields, *_ in problems for n in fields)}
    varied = sorted((name for name in values if len(values[name]) > 1), key=lambda name: -len(values[name]))
    if len(varied) < 2:
        return None
    fields_of = [fields for fields, *_ in problems]
    cells = {(y, x): {(each.get(y), each.get(x)) for each in fields_of} for x, y in combinations(varied, 2)}
    pairs = sorted(cells, key=lambda pair: -len(cells[pair]))
    maps = [_map(problems, values, *pair) for pair in pairs]
    (y, x), first = pairs[0], maps[0]
    heat = {
        "type": "heatmap",
        **first,
        "zmin": 0,
        "zmax": 100,
        "colorscale": SCALE,
        "texttemplate": "%{z:.0f}",
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"title": {"text": "%"}, "outlinewidth": 0, "thickness": 14},
    }
    has_gaps = any(share is None for of_pair in maps for row in of_pair["z"] for share in row)
    untried = {
        "type": "scatter",
        "name": "no sweep of such a problem",
        "mode": "markers",
        "x": [None],
        "y": [None],
        "marker": {"symbol": "square", "size": 12, "color": UNTRIED},
        "showlegend": True,
    }
    n_most = len(values[varied[1]])  # largest number of rows: columns show the field with more values
    shown = plot_layout(170 + 34 * max(4, n_most), xaxis=_axis(x), yaxis=_axis(y), plot_bgcolor=UNTRIED)
    if len(pairs) > 1:
        shown["margin"] = {**shown["margin"], "t": 60}
        shown["updatemenus"] = [_menu(pairs, maps)]
    return Picture(
        "Efficiency of the winners, over two fields of the problem",
        "A cell is the share of the measured roofline, in percent; if several problems share a cell, it shows their "
        "median, and the pointer lists them."
        + (" Cells without a sweep are grey." if has_gaps else "")
        + (" The menu chooses the fields." if len(pairs) > 1 else ""),
        {"data": [heat, *[untried] * has_gaps], "layout": shown},
    )


def _axis(name: str) -> PlotlyFigure:
    return axis(name, type="category", showgrid=False)


def _values(problems: Sequence[MappedProblem], name: str) -> list[Value]:
    """Returns the sorted values of a field, numbers before words."""
    own = {fields[name] for fields, *_ in problems if name in fields}
    return sorted(own, key=natural)


def _map(problems: Sequence[MappedProblem], values: Mapping[str, list[Value]], y: str, x: str) -> PlotlyFigure:
    """Returns the cells of a heat map, rows of ``y`` and columns of ``x``; a cell without a problem is empty."""
    cells: dict[tuple[Value | None, Value | None], list[tuple[float, str]]] = {}
    for fields, share, text in problems:
        cells.setdefault((fields.get(y), fields.get(x)), []).append((share, text))
    rows = [[cells.get((v, u), []) for u in values[x]] for v in values[y]]
    return {
        "x": [label(value) for value in values[x]],
        "y": [label(value) for value in values[y]],
        "z": [[round(100 * median(s for s, _ in cell), 2) if cell else None for cell in row] for row in rows],
        "customdata": [["<br>".join(text for _, text in cell[:8]) for cell in row] for row in rows],
    }


def _menu(pairs: Sequence[tuple[str, str]], maps: Sequence[PlotlyFigure]) -> PlotlyFigure:
    buttons = [
        {
            "label": label(f"{y} over {x}"),
            "method": "update",
            "args": [
                {member: [cells] for member, cells in of_pair.items()},
                {"xaxis.title.text": label(x), "yaxis.title.text": label(y)},
                [0],  # the index of the heat map; the legend's entry stays
            ],
        }
        for (y, x), of_pair in zip(pairs, maps, strict=True)
    ]
    place = {"x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    return {"buttons": buttons, "bgcolor": "#ffffff", **place}
