"""The pictures of a sweep's parameters: how much each matters, and the times of all configs by its value."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from ..analysis.importance import Importance
from ..core.units import seconds, unit_of
from ..records.record import SweepRecord
from ..trial.row import Trial
from .blocks import BLUE, MUTED, Figure, Picture, axis, in_unit, label, layout, log_axis

MANY_POINTS = 8_000  # above so many, boxes stand without their points: a browser draws each as an element
COLUMNS = 3  # of small pictures, one for each parameter
CELL = 230  # pixels of height of one


def importance(found: Sequence[Importance]) -> Picture | None:
    """Shows how much each parameter matters; None where no share is known."""
    known = [each for each in found if each.share is not None]
    if not known:
        return None
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [label(each.name) for each in known],
        "x": [round(100 * (each.share or 0.0), 2) for each in known],
        "text": [f"{100 * (each.share or 0.0):.0f} %" for each in known],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": BLUE},
        "hovertext": [f"{label(each.name)}: of {each.n_trials} configs that have it" for each in known],
        "hoverinfo": "text",
    }
    shown = layout(
        80 + 24 * len(known),
        xaxis=axis("share of the variance of log time (%)", range=[0, 108]),
        yaxis=axis(type="category", autorange="reversed", ticks="outside", ticklen=4, tickcolor="#ffffff"),
    )
    return Picture(
        "How much each parameter matters",
        "A long bar is a parameter whose value alone tells much of how fast a config is; shares need not add up to "
        "100 %, since parameters act together.",
        {"data": [bars], "layout": shown},
    )


def by_value(sweep: SweepRecord, found: Sequence[Importance]) -> Picture | None:
    """Shows the times of all configs by the value of each parameter, in small pictures; None if no parameter varies."""
    chosen = [each for each in found if len(each.values) > 1]
    if not chosen:
        return None
    unit, size = unit_of(sweep.measured[0].median_s or 1.0)
    with_points = sum(each.n_trials for each in chosen) <= MANY_POINTS
    data, axes, notes = [], {}, []
    n_rows = ceil(len(chosen) / COLUMNS)
    for i, each in enumerate(chosen):
        row, column = divmod(i, COLUMNS)
        left, top = column / COLUMNS, 1 - row / n_rows
        across, down = [left + 0.02, left + 1 / COLUMNS - 0.02], [top - 1 / n_rows * 0.8, top - 1 / n_rows * 0.12]
        name = "" if i == 0 else str(i + 1)
        order = [label(effect.value) for effect in sorted(each.values, key=lambda effect: _natural(effect.value))]
        axes[f"xaxis{name}"] = axis(
            type="category", domain=across, anchor=f"y{name}", categoryorder="array", categoryarray=order
        )
        axes[f"yaxis{name}"] = _time_axis(sweep.measured, each.name, domain=down, anchor=f"x{name}")
        data.append(_boxes(sweep.measured, each.name, name, size, with_points))
        notes.append(_note(f"<b>{label(each.name)}</b> {_share(each)}", across[0], down[1]))
    shown = layout(
        CELL * n_rows, showlegend=False, annotations=notes, margin={"l": 40, "r": 10, "t": 0, "b": 0}, **axes
    )
    what = "a dot is a config, a box the middle half" if with_points else "a box is the middle half, its whiskers all"
    return Picture(
        "Time of every config, by the value of each parameter",
        f"Median time in {unit}, low is fast; {what} of those with that value; the percentage is the share of the "
        "variance of log time that the parameter alone explains.",
        {"data": data, "layout": shown},
    )


def _boxes(measured: Sequence[Trial], parameter: str, axes: str, size: float, with_points: bool) -> Figure:
    having = [trial for trial in measured if parameter in trial.config]
    return {
        "type": "box",
        "x": [label(trial.config[parameter]) for trial in having],
        "y": [in_unit(trial.median_s or 0.0, size) for trial in having],
        "xaxis": f"x{axes}",
        "yaxis": f"y{axes}",
        "boxpoints": "all" if with_points else False,
        "jitter": 0.5,
        "pointpos": 0,
        "marker": {"color": BLUE, "size": 3, "opacity": 0.4},
        "line": {"color": MUTED, "width": 1},
        "fillcolor": "rgba(0,0,0,0)",
        "hoveron": "points" if with_points else "boxes",
        "text": [f"trial {trial.number}: {seconds(trial.median_s)}" for trial in having],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _time_axis(measured: Sequence[Trial], parameter: str, **place: Any) -> Figure:
    """Returns an axis of times, whose labels do not touch one another."""
    times = [trial.median_s or 0.0 for trial in measured if parameter in trial.config]
    return log_axis(**place, **({"dtick": "D2"} if max(times) > 6 * min(times) else {"nticks": 5}))


def _note(text: str, x: float, y: float) -> Figure:
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {**place, "text": text, "showarrow": False, "font": {"size": 13}}


def _share(each: Importance) -> str:
    return "" if each.share is None else f"{100 * each.share:.0f} %"


def _natural(value: object) -> tuple[int, float, str]:
    """Returns the key that sorts numbers before words."""
    return (0, float(value), "") if isinstance(value, (int, float)) else (1, 0.0, str(value))
