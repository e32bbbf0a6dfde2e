"""The loss of configs that are chosen without a sweep of the problem: by a portfolio, and by tiers of the lookup."""

from collections.abc import Sequence
from math import exp, isfinite

from ..analysis.portfolio import Portfolio, portfolios, tables
from ..core.units import percent
from ..records.record import SweepRecord
from ..runtime.lookup import ARCHITECTURE, DEFAULT, NEAREST, PREDICTED
from ..runtime.wisdom import Loss
from .blocks import BLUE, MUTED, ORANGE, Picture, PlotlyFigure, axis, plot_layout

K_MAX = 8  # configs in the largest portfolio
NOTE = {"showarrow": False, "font": {"size": 10}}  # style of a note in a picture
TIERS = {
    NEAREST: "nearest: other sizes here",
    ARCHITECTURE: "architecture: another GPU",
    PREDICTED: "predicted: learnt",
    DEFAULT: "default: not tuned",
}


def portfolio_picture(sweeps: Sequence[SweepRecord]) -> Picture | None:
    """Shows the loss of the best portfolio of each size, for sweeps of one kernel and device.

    None with fewer than two problems.
    """
    table = next(iter(tables(sweeps)), None)
    if table is None or len(table.problems) < 2:
        return None
    by_size = portfolios(table, K_MAX, cross_validate=False)
    sizes = [len(each.configs) for each in by_size]
    lines = [
        _line("worst problem", ORANGE, by_size, [each.total.worst for each in by_size]),
        _line("median problem", BLUE, by_size, [each.total.median for each in by_size]),
    ]
    shown = plot_layout(
        320,
        xaxis=axis("configs in the portfolio", dtick=1, range=[0.7, max(sizes) + 0.3]),
        yaxis=axis("loss (%)", rangemode="tozero"),
        annotations=[
            {"x": k, "y": 1, "yref": "paper", "yanchor": "top", "text": f"{n} not<br>served", **NOTE}
            for k, n in zip(sizes, (each.total.n_unserved for each in by_size), strict=True)
            if n
        ],
    )
    return Picture(
        "Loss with a few configs for all problems",
        "A dot is the best set of so many configs: each problem uses the best of them, and its loss is relative to its "
        "own winner. A problem is not served if none of them was measured there; the worst loss is then unknown. "
        f"{_untried(by_size[-1], len(table.problems))}"
        "The command autotune portfolio lists the configs, and the loss at other problems.",
        {"data": lines, "layout": shown},
    )


def tiers(losses: Sequence[Loss]) -> Picture | None:
    """Shows the losses of each tier of the lookup, for one kernel and device; None if no loss is known."""
    rows = sorted((loss for loss in losses if loss.tier in TIERS), key=lambda loss: list(TIERS).index(loss.tier))
    if not rows:
        return None
    names = [_tier_name(loss) for loss in rows]
    shared = {"type": "scatter", "mode": "markers", "y": names, "hovertemplate": "%{text}<extra></extra>"}
    texts = [
        f"{loss.tier}: median {percent(loss.median)}, nine of ten at most {percent(loss.bound)}<br>of {loss.n} problems"
        for loss in rows
    ]
    medians, bounds = [_percentage(loss.median) for loss in rows], [_percentage(loss.bound) for loss in rows]
    lines = [
        {"type": "line", "x0": a, "x1": b, "y0": name, "y1": name, "line": {"color": MUTED, "width": 1}}
        for name, a, b in zip(names, medians, bounds, strict=True)
    ]
    dots = [
        {**shared, "name": "median", "x": medians, "text": texts, "marker": {"color": BLUE, "size": 9}},
        {**shared, "name": "nine of ten", "x": bounds, "text": texts, "marker": {"color": ORANGE, "size": 9}},
    ]
    shown = plot_layout(
        130 + 28 * len(rows),
        xaxis=axis("loss (%)", rangemode="tozero"),
        yaxis=axis(type="category", range=[len(rows) - 0.5, -0.5], ticks="outside", ticklen=4, tickcolor="#ffffff"),
        shapes=lines,
    )
    return Picture(
        "Loss of the lookup at problems that were not tuned",
        "Each problem in turn is left out. The config that the package then chooses is compared with the problem's own "
        "winner, by the times of its own sweep: the median loss, and what nine of ten do not exceed. Choices that are "
        "predicted to be slower have a row of their own.",
        {"data": dots, "layout": shown},
    )


def _tier_name(loss: Loss) -> str:
    return f"{TIERS[loss.tier]}, predicted within {percent(exp(loss.up_to) - 1)}"


def _untried(largest: Portfolio, n_problems: int) -> str:
    n = largest.n_untried
    if not n:
        return ""
    return (
        f"At {n} of {n_problems} problems some of the {len(largest.configs)} configs were never tried: their times "
        "there are unknown, so the loss shown is an upper bound. "
    )


def _line(name: str, colour: str, by_size: Sequence[Portfolio], losses: Sequence[float]) -> PlotlyFigure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [len(each.configs) for each in by_size],
        "text": [f"not all tried at {each.n_untried} problems" if each.n_untried else "all tried" for each in by_size],
        "y": [_percentage(loss) if isfinite(loss) else None for loss in losses],
        "line": {"color": colour, "width": 2},
        "hovertemplate": f"%{{x}} configs, {name}: %{{y}} %, %{{text}}<extra></extra>",
    }


def _percentage(share: float) -> float:
    return round(100 * share, 3)
