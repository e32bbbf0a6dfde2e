"""The parameters of a kernel over many sweeps: how much each matters, which values win, and the loss of fixing one."""

from collections.abc import Sequence

from ..analysis.across import COLUMNS, ParameterAcross, parameters_across
from ..records.record import SweepRecord
from .blocks import BLUE, PageBlock, Picture, Table, axis, boxes, category_axis, label, plot_layout


def parameter_blocks(sweeps: Sequence[SweepRecord]) -> list[PageBlock]:
    """Returns the picture and the table of the parameters of one kernel; [] with fewer than two sweeps."""
    found = parameters_across(sweeps) if len(sweeps) > 1 else []
    if not found:
        return []
    table = Table(
        "Values of the parameters",
        "The share is the median over the sweeps in which the parameter varies. The value to fix it to is the one with "
        "the least loss; the number in brackets counts the sweeps that measured it. It costs the slowdown of the best "
        "config with it, at the median and at the worst problem. Few trials make a value look worse than it is.",
        ("parameter", "share of variance", *COLUMNS),
        [(each.name, each.share_text, *each.cells()) for each in found],
    )
    picture = _shares([each for each in found if each.shares])
    return [picture, table] if picture else [table]


def _shares(found: Sequence[ParameterAcross]) -> Picture | None:
    """Shows the share of each parameter in each sweep; None if no share is known."""
    if not found:
        return None
    names = [label(each.name) for each in found]
    y = [name for name, each in zip(names, found, strict=True) for _ in each.shares]
    x, marker = [round(100 * s, 1) for each in found for s in each.shares], {"color": BLUE, "size": 4, "opacity": 0.4}
    shown = plot_layout(
        80 + 26 * max(3, len(found)),
        xaxis=axis("share of the variance (%)", range=[-2, 102]),
        yaxis=category_axis(len(names), categoryorder="array", categoryarray=names, dtick=1),
    )
    return Picture(
        "How much each parameter matters, over all sweeps",
        "A dot is the share of the variance of log time in one sweep in which the parameter varies; a box is the "
        "middle half of the sweeps. A parameter far to the right decides how fast a config is at most problems.",
        {"data": [boxes(x, y, marker, "%{y}: %{x:.0f} %", orientation="h")], "layout": shown},
    )
