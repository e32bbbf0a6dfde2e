"""The loss of configs that tiers of the lookup choose without a sweep of the problem."""

from collections.abc import Sequence
from math import exp

from ..core.units import percent
from ..runtime.lookup import ARCHITECTURE, DEFAULT, NEAREST, PREDICTED
from ..runtime.wisdom import Loss
from .blocks import BLUE, Picture, axis, category_axis, dots, error_bars, plot_layout

TIERS = {NEAREST: "other sizes here", ARCHITECTURE: "another GPU", PREDICTED: "learnt", DEFAULT: "not tuned"}


def tiers(losses: Sequence[Loss]) -> Picture | None:
    """Shows the losses of each tier of the lookup, for one kernel and device; None if no loss is known."""
    rows = [loss for tier in TIERS for loss in losses if loss.tier == tier]
    if not rows:
        return None
    names = [f"{loss.tier}: {TIERS[loss.tier]}, predicted within {percent(exp(loss.up_to) - 1)}" for loss in rows]
    medians, bounds = ([round(100 * getattr(loss, name), 3) for loss in rows] for name in ("median", "bound"))
    text = [f"nine of ten at most {percent(loss.bound)},<br>of {loss.n} problems" for loss in rows]
    marker, bars = {"color": BLUE, "size": 9}, error_bars(medians, list(zip(medians, bounds, strict=True)))
    yaxis = category_axis(len(rows), ticks="outside", ticklen=4, tickcolor="#ffffff")
    shown = plot_layout(130 + 28 * len(rows), xaxis=axis("loss (%)", rangemode="tozero"), yaxis=yaxis)
    return Picture(
        "Loss of the lookup at problems that were not tuned",
        "Each problem in turn is left out. The config that the package then chooses is compared with the problem's own "
        "winner, by the times of its own sweep. A dot is the median loss, and its bar ends at what nine of ten do not "
        "exceed. Choices that are predicted to be slower have a row of their own.",
        {"data": [dots(medians, names, text, marker, "%{y}: median %{x} %, %{text}", error_x=bars)], "layout": shown},
    )
