"""The pictures of one sweep: its search, its finalists, and its wall time."""

from collections.abc import Sequence

from ..analysis.fields import assignments
from ..analysis.show import Spent, best_so_far
from ..core.units import broken_at_commas, percent, seconds_text, unit_of
from ..records.outcome import Finalist
from ..records.record import SweepRecord
from ..records.trial import Trial
from .blocks import (
    BLUE,
    GREEN,
    N_BEST,
    ORANGE,
    RED,
    Picture,
    PlotlyFigure,
    axis,
    bars,
    category_axis,
    dots,
    error_bars,
    in_unit,
    label,
    log_axis,
    plot_layout,
    sampled,
    sampling_text,
)

N_FAILED = 1000  # most failed configs in a picture
FAR = 1.3  # finalists slower than so many times the winner are cut off, since they would squeeze the intervals


def search(sweep: SweepRecord) -> Picture | None:
    """Shows the trials in their order, and the best time so far; None if nothing was measured."""
    if not sweep.measured:
        return None
    unit, size = unit_of(sweep.measured[0].median_s or 1.0)
    measured: list[tuple[int, Trial]] = []
    failed: list[tuple[int, Trial]] = []
    for place, trial in enumerate(sweep.trials, 1):
        (measured if trial.median_s else failed).append((place, trial))
    floor = (sweep.measured[0].median_s or 1.0) / 1.15
    sampling = sampling_text(len(measured), best="fastest") + sampling_text(len(failed), "that failed", N_FAILED)
    fastest_first = sorted(measured, key=lambda each: each[1].median_s or 0.0)
    measured = sorted(sampled(fastest_first, n_first=N_BEST), key=lambda each: each[0])
    failed = sampled(failed, N_FAILED)
    steps = _steps(best_so_far(sweep.trials))
    line = {
        "type": "scatter",
        "name": "best so far",
        "mode": "lines",
        "line": {"color": ORANGE, "width": 2, "shape": "hv"},
        "x": [place for place, _ in steps],
        "y": [None if best is None else in_unit(best, size) for _, best in steps],
        "hoverinfo": "skip",
    }
    configs = _marks("a config", {"color": BLUE, "size": 5, "opacity": 0.55}, measured, size)
    crosses = _marks("failed", {"color": RED, "size": 7, "symbol": "x-thin-open"}, failed, size, floor)
    traces = [configs, line, *([crosses] if failed else [])]
    shown = plot_layout(380, xaxis=axis("trial"), yaxis=log_axis(f"median time ({unit})"))
    return Picture(
        "Time of every config, in the order of the search",
        "A dot is the median of one config; the line is the best so far"
        + ("; crosses at the bottom are configs that failed." if failed else ".")
        + sampling,
        {"data": traces, "layout": shown},
    )


def _steps(bests: Sequence[float | None]) -> list[tuple[int, float | None]]:
    """Returns the places, counted from 1, at which the best so far changes, and the last place."""
    last = len(bests) - 1
    return [(i + 1, best) for i, best in enumerate(bests) if i in (0, last) or best != bests[i - 1]]


def finalists(sweep: SweepRecord) -> Picture | None:
    """Shows the final round with its intervals; None without a final round."""
    if not sweep.finalists:
        return None
    unit, size = unit_of(sweep.finalists[0].median_s)
    names = [_rank(i, finalist, sweep) for i, finalist in enumerate(sweep.finalists, 1)]
    medians = [in_unit(finalist.median_s, size) for finalist in sweep.finalists]
    intervals = [
        tuple(in_unit(end, size) for end in finalist.interval_s or (finalist.median_s,) * 2)
        for finalist in sweep.finalists
    ]
    low_s, high_s, n_beyond = _range(sweep.finalists)
    room = max(0.06 * (high_s - low_s), 1e-3 * high_s)
    shown_range = [in_unit(max(0.0, low_s - room), size), in_unit(high_s + room, size)]
    text = [f"{seconds_text(f.median_s)}<br>{lines_for_pointer(assignments(f.config))}" for f in sweep.finalists]
    marker = {"color": [GREEN, *[BLUE] * (len(names) - 1)], "size": 9}
    shown = plot_layout(
        90 + 28 * len(names),
        xaxis=axis(f"median time ({unit})", range=shown_range),
        yaxis=category_axis(len(names)),
    )
    return Picture(
        "The final round: the best configs measured again, interleaved",
        "A dot is a median, its bar the 95 % confidence interval; where bars overlap, the round cannot tell which "
        "config is faster." + (f" Beyond the right edge: {n_beyond} that took far longer." if n_beyond else ""),
        {"data": [dots(medians, names, text, marker, error_x=error_bars(medians, intervals))], "layout": shown},
    )


def spending(where: Spent) -> Picture | None:
    """Shows the wall time of the sweep by activity; None if it is unknown."""
    parts = sorted(((what, each) for what, each in where.seconds.items() if each > 0), key=lambda part: -part[1])
    if not parts:
        return None
    names, seconds = [label(what) for what, _ in parts], [each for _, each in parts]
    text = [f"{seconds_text(each)}, {percent(where.shares[what])}" for what, each in parts]
    shown = plot_layout(
        80 + 26 * len(parts),
        xaxis=axis("wall time (s)", range=[0, 1.5 * parts[0][1]]),
        yaxis=axis(type="category", autorange="reversed", ticks="outside", ticklen=4, tickcolor="#ffffff"),
    )
    return Picture(
        f"Where the time of the sweep went: {seconds_text(where.total_s)}",
        "Wall time by activity; compilation runs in parallel, and counts only while the device waited for it.",
        {"data": [bars(names, seconds, text, hoverinfo="skip")], "layout": shown},
    )


def _marks(
    name: str, marker: PlotlyFigure, placed: Sequence[tuple[int, Trial]], size: float, floor: float = 0.0
) -> PlotlyFigure:
    """Returns a mark for each trial at its time, or at ``floor`` if it has no time."""
    times = [in_unit(trial.median_s or floor, size) for _, trial in placed]
    text = [_trial_hover(trial) for _, trial in placed]
    return dots([place for place, _ in placed], times, text, marker, name=name)


def _range(finalists: Sequence[Finalist]) -> tuple[float, float, int]:
    """Returns the least and the largest time to show, and the number of finalists beyond, which are far slower."""
    near = [each for each in finalists if each.median_s <= FAR * finalists[0].median_s]
    spreads = [each.interval_s or (each.median_s, each.median_s) for each in near]
    return min(low for low, _ in spreads), max(high for _, high in spreads), len(finalists) - len(near)


def _rank(place: int, finalist: Finalist, sweep: SweepRecord) -> str:
    is_default = ", default" if finalist.config == sweep.about.default else ""
    return label(f"{place}: {finalist.relation or 'measured'}{is_default}")


def _trial_hover(trial: Trial) -> str:
    what = seconds_text(trial.median_s) if trial.median_s else trial.status.words
    return f"trial {trial.number}: {label(what)}<br>{lines_for_pointer(assignments(trial.config))}"


def lines_for_pointer(text: str) -> str:
    """Returns assignments in several lines, for a hover box."""
    return "<br>".join(map(label, broken_at_commas(text, 70)))
