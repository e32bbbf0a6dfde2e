"""The pictures of a sweep's parameters: how much each matters, the times by value, and which ones interact."""

from collections.abc import Mapping, Sequence

import numpy as np

from ..analysis.importance import Importance, marked_name
from ..analysis.interactions import Interaction
from ..core.config import Value
from ..core.units import seconds_text, unit_of
from ..records.record import SweepRecord
from ..records.trial import Trial
from .blocks import (
    BLUE,
    BOX,
    FAINT,
    SCALE,
    UNTRIED,
    Gallery,
    Picture,
    PlotlyFigure,
    Small,
    axis,
    bars,
    boxes,
    in_unit,
    label,
    log_axis,
    natural,
    plot_layout,
)

MANY_POINTS = 8_000  # above this number, boxes have no points, since a browser draws each point as an element
CELL = 210  # height of a small picture, in pixels
MANY_CELLS = 9  # values of a parameter; with more, the cells of a heat map are too small for numbers
FAR_LOSS = 1.0  # the darkest colour means at least this loss: nobody wants a config that is twice as slow
STARRED = "*: the winner does not have this parameter."
MARGIN = {"l": 40, "r": 10, "t": 10, "b": 34}


def importance(parameters: Sequence[Importance], winner: Mapping[str, Value]) -> Picture | None:
    """Shows how much each parameter matters; None if no share is known.

    ``winner``: the winner's config, {} without a winner. Parameters that it lacks are marked.
    """
    ranked = [each for each in parameters if each.share is not None]
    if not ranked:
        return None
    shown_bars = bars(
        [label(marked_name(each.name, winner)) for each in ranked],
        [round(100 * (each.share or 0.0), 2) for each in ranked],
        [_share(each.share) for each in ranked],
        marker={"color": [BLUE if _has(winner, each.name) else FAINT for each in ranked]},
        hovertext=[f"{label(each.name)}: {each.n_trials} configs have it" for each in ranked],
        hoverinfo="text",
    )
    shown = plot_layout(
        80 + 24 * len(ranked),
        xaxis=axis("share of the variance (%)", range=[0, 112]),
        yaxis=axis(type="category", autorange="reversed", dtick=1, ticks="outside", ticklen=4, tickcolor="#ffffff"),
    )
    return Picture(
        "How much each parameter matters",
        "A long bar is a parameter whose value alone predicts much of a config's speed. A share is of the variance of "
        "log time; shares need not add up to 100 %, since parameters act together."
        + (f" {STARRED}" if not all(_has(winner, each.name) for each in ranked) else ""),
        {"data": [shown_bars], "layout": shown},
    )


def _has(winner: Mapping[str, Value], name: str) -> bool:
    return not winner or name in winner


def by_value(sweep: SweepRecord, found: Sequence[Importance]) -> Gallery | None:
    """Shows the times of all configs by the value of each parameter in small pictures; None if no parameter varies."""
    chosen = [each for each in found if len(each.values) > 1]
    if not chosen:
        return None
    measured = sweep.measured
    winner = sweep.winner.config if sweep.winner else {}
    unit, size = unit_of(measured[0].median_s or 1.0)
    with_points = sum(each.n_trials for each in chosen) <= MANY_POINTS
    what = "a dot is a config, a box the middle half" if with_points else "a box is the middle half, its whiskers all"
    return Gallery(
        "Time of every config, by the value of each parameter",
        f"Median time in {unit}, low is fast; {what} of those with that value; the percentage is the share of the "
        "variance of log time that the parameter alone explains.",
        tuple(
            Small(marked_name(each.name, winner), _share(each.share), _boxes(measured, each, size, with_points))
            for each in chosen
        ),
    )


def interaction_gallery(found: Sequence[Interaction]) -> Gallery | None:
    """Shows the best time for each pair of values of the parameters that interact most; None if there are none."""
    if not found:
        return None
    return Gallery(
        "Parameters that act together",
        "A cell is the slowdown, in percent, of the best config with both values relative to the best of all; "
        "light is fast; grey pairs were not measured. Where the best column changes from row to row, neither parameter "
        "can be chosen alone. The percentage is the share of the variance of log time that the pair explains "
        "beyond the sum of both.",
        tuple(Small(" and ".join(each.names), _share(each.share), _heat(each)) for each in found),
    )


def _boxes(measured: Sequence[Trial], each: Importance, size: float, with_points: bool) -> PlotlyFigure:
    having = [trial for trial in measured if each.name in trial.config]
    order = [label(effect.value) for effect in sorted(each.values, key=lambda effect: natural(effect.value))]
    if not with_points:
        return _drawn_boxes(having, each, size, order)
    shown = boxes(
        [label(trial.config[each.name]) for trial in having],
        [in_unit(trial.median_s or 0.0, size) for trial in having],
        {"color": BLUE, "size": 3, "opacity": 0.4},
        "%{text}",
        text=[f"trial {trial.number}: {seconds_text(trial.median_s)}" for trial in having],
    )
    return _box_figure(shown, [trial.median_s or 0.0 for trial in having], order)


def _drawn_boxes(having: Sequence[Trial], each: Importance, size: float, order: list[str]) -> PlotlyFigure:
    """Returns boxes whose edges are computed here, so that the page need not contain every time."""
    times: dict[Value, list[float]] = {}
    for trial in having:
        times.setdefault(trial.config[each.name], []).append(trial.median_s or 0.0)
    edges = [np.quantile(group, (0, 0.25, 0.5, 0.75, 1), method="hazen").tolist() for group in times.values()]
    names = ("lowerfence", "q1", "median", "q3", "upperfence")
    x = [label(value) for value in times]
    drawn = {name: [in_unit(edge[i], size) for edge in edges] for i, name in enumerate(names)}
    return _box_figure(
        {"type": "box", "x": x, **drawn, **BOX, "hoveron": "boxes"}, [trial.median_s or 0.0 for trial in having], order
    )


def _box_figure(drawn: Mapping[str, object], times: Sequence[float], order: list[str]) -> PlotlyFigure:
    ticks = {"dtick": "D2"} if max(times) > 6 * min(times) else {"nticks": 5}  # labels must not touch one another
    values = axis(type="category", categoryorder="array", categoryarray=order)
    shown = plot_layout(CELL, xaxis=values, yaxis=log_axis(**ticks), showlegend=False, margin=MARGIN)
    return {"data": [drawn], "layout": shown}


def _heat(each: Interaction) -> PlotlyFigure:
    """Returns a heat map; the parameter with more values is on the horizontal axis."""
    values = [sorted({pair[side] for pair in each.best_s}, key=natural) for side in (0, 1)]
    across = int(len(values[1]) >= len(values[0]))
    x, y = values[across], values[1 - across]
    least = min(each.best_s.values())
    cells = [[each.best_s.get((v, u) if across else (u, v)) for u in x] for v in y]
    losses = [[None if best is None else round(100 * (best / least - 1), 1) for best in row] for row in cells]
    (x_name, y_name) = each.names[across], each.names[1 - across]
    heat = {
        "type": "heatmap",
        "x": [label(value) for value in x],
        "y": [label(value) for value in y],
        "z": losses,
        "zmin": 0,
        "zmax": 100 * FAR_LOSS,
        "colorscale": SCALE,
        "showscale": False,
        "text": [[seconds_text(best) for best in row] for row in cells],
        "hovertemplate": f"{label(x_name)}=%{{x}}, {label(y_name)}=%{{y}}: %{{text}}, +%{{z}} %<extra></extra>",
        "hoverongaps": False,
        "xgap": 1,
        "ygap": 1,
    }
    if len(x) <= MANY_CELLS:
        heat["texttemplate"] = "%{z:.0f}"
    x_axis, y_axis = (axis(name, type="category", showgrid=False) for name in (x_name, y_name))
    height, margin = 80 + 26 * max(4, len(y)), {**MARGIN, "b": 44}
    shown = plot_layout(height, xaxis=x_axis, yaxis=y_axis, margin=margin, plot_bgcolor=UNTRIED)
    shown["font"] = {**shown["font"], "size": 11}
    return {"data": [heat], "layout": shown}


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
