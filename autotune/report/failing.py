"""The section on failures of a sweep's page: by status and by value, and the configs that the space refuses."""

from collections import Counter
from collections.abc import Sequence

from ..analysis.failing_values import FailureCount, failure_counts
from ..analysis.show import Failures, failures
from ..core.errors import Status
from ..records.record import SweepRecord
from .blocks import (
    MUTED,
    ORANGE,
    RED,
    Gallery,
    PageBlock,
    PlotlyFigure,
    Small,
    Table,
    axis,
    label,
    natural,
    plot_layout,
)
from .parameters import MARGIN

MOST_PICTURES = 9  # parameters with a picture
COLOURS = {"red": RED, "orange": ORANGE, "violet": "#7b4fb5"}  # colours of the most frequent statuses, in this order
OTHERS = "others"  # all other statuses
HEIGHT = 180  # pixels


def failure_blocks(sweep: SweepRecord) -> list[PageBlock | None]:
    """Returns the blocks about failed trials; None in place of an empty one."""
    groups = failures(sweep)
    return [_failed(groups), _values(groups), _shares(sweep), _refused(sweep)]


def _failed(groups: Sequence[Failures]) -> Table | None:
    if not groups:
        return None
    return Table(
        "Configs that failed",
        "One line for each status, with its first trial's message and the command that runs this config again.",
        ("status", "trials", "first trial", "its message", "reproduce"),
        [(each.status.words, each.n, each.number, each.message, each.reproduce) for each in groups],
        code=("its message", "reproduce"),
    )


def _values(groups: Sequence[Failures]) -> Table | None:
    """Returns the values with which all configs failed with one status; None if there are none."""
    rows = [(str(rule), rule.n, each.status.words, each.n) for each in groups for rule in each.values]
    if not rows:
        return None
    return Table(
        "Values that fail",
        "Every config that was tried with these values failed in this way; no config with them was measured.",
        ("values", "configs with them", "status", "all configs of that status"),
        rows,
        code=("values",),
    )


def _shares(sweep: SweepRecord) -> Gallery | None:
    """Shows the share of failures by value, for the parameters whose values differ most; None if none differ."""
    counts = failure_counts(sweep.trials)
    if not counts:
        return None
    totals = Counter(trial.status for trial in sweep.trials if trial.status != Status.MEASURED)
    ordered = [status for status, _ in totals.most_common()]
    colours = dict(zip(ordered, COLOURS.items(), strict=False))
    legend = [f"{name}: {status.words}" for status, (name, _) in colours.items()]
    legend += [f"grey: {OTHERS}"] * (len(ordered) > len(COLOURS))
    shown = list(counts.items())[:MOST_PICTURES]
    return Gallery(
        "Share of the configs that fail, by value",
        f"The height of a bar is the share of the tried configs with that value that failed ({', '.join(legend)})."
        + (f" Of {len(counts)} parameters, the {len(shown)} that differ most." if len(counts) > len(shown) else ""),
        tuple(
            Small(name, "", _bars(values, {status: colour for status, (_, colour) in colours.items()}))
            for name, values in shown
        ),
    )


def _bars(values: Sequence[FailureCount], colours: dict[Status, str]) -> PlotlyFigure:
    """Returns bars for the values of a parameter, with a part for each coloured status and one for the others."""
    ordered = sorted(values, key=lambda each: natural(each.value))
    names = [label(each.value) for each in ordered]
    rest = {each.value: sum(n for s, n in each.failed.items() if s not in colours) for each in ordered}
    parts = {
        status.words: (colour, [each.failed.get(status, 0) for each in ordered]) for status, colour in colours.items()
    }
    parts[OTHERS] = MUTED, [rest[each.value] for each in ordered]
    bars = [
        {
            "type": "bar",
            "name": what,
            "x": names,
            "y": [round(100 * n / each.n, 2) for n, each in zip(counts, ordered, strict=True)],
            "marker": {"color": colour},
            "text": [f"{n} of {each.n} {what}" for n, each in zip(counts, ordered, strict=True)],
            "textposition": "none",
            "hovertemplate": "%{x}: %{text}<extra></extra>",
        }
        for what, (colour, counts) in parts.items()
        if any(counts)
    ]
    shown = plot_layout(
        HEIGHT,
        barmode="stack",
        xaxis=axis(type="category", categoryorder="array", categoryarray=names),
        yaxis=axis(range=[0, 100], dtick=50, ticksuffix=" %"),
        showlegend=False,
        margin=MARGIN,
    )
    return {"data": bars, "layout": shown}


def _refused(sweep: SweepRecord) -> Table | None:
    rows = [(n, why) for why, n in sorted(sweep.about.refused.items(), key=lambda item: -item[1])]
    if not rows:
        return None
    return Table(
        "Configs that the space refuses",
        "They are never tried. Each one is counted at the first constraint that refuses it.",
        ("configs", "constraint that they violate"),
        rows,
    )
