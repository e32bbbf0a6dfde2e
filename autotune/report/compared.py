"""The page for two sets of records: problems that changed by more than the noise, and other differences."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from ..analysis.fields import assignments, telling_fields
from ..analysis.noise import Comparison, Pair, compared, matched
from ..core.config import Config, Value
from ..core.errors import Status, UsageError
from ..core.units import seconds_text, unit_of
from ..records.outcome import Relation
from ..records.record import SweepRecord
from ..records.trial import Trial
from .blocks import (
    BLUE,
    GREEN,
    GRID,
    MUTED,
    N_BEST,
    RED,
    Fact,
    Facts,
    Heading,
    PageBlock,
    Picture,
    PlotlyFigure,
    Table,
    axis,
    category_axis,
    dots,
    in_unit,
    label,
    log_axis,
    plot_layout,
    sampled,
    sampling_text,
)

COLOURS = {Relation.SAME: MUTED, Relation.FASTER: GREEN, Relation.SLOWER: RED}
TOLD_VALUES = 4  # values of a property that are listed; the others are only counted
SweepRecords = Sequence[SweepRecord]
ORIGINS: dict[str, Callable[[SweepRecord], str]] = {
    "compiler": lambda sweep: sweep.about.compiler,
    "machine": lambda sweep: sweep.about.machine,
    "commit": lambda sweep: sweep.about.commit,
    "versions": lambda sweep: ", ".join(f"{name} {version}" for name, version in sweep.about.versions.items()),
    "protocol": lambda sweep: _settings_text(sweep.about.settings.get("protocol")),
    "sampler": lambda sweep: str(sweep.about.settings.get("sampler") or ""),
    "day": lambda sweep: sweep.about.started[:10],
}


def comparison_title(before: SweepRecords, after: SweepRecords) -> str:
    """Returns the title of the page."""
    sweeps = [sweep for sweep, _ in matched(before, after)]
    kernels, devices = sorted({sweep.kernel for sweep in sweeps}), sorted({sweep.device.name for sweep in sweeps})
    what = (
        sweeps[0].title
        if len(sweeps) == 1
        else f"{len(sweeps)} problems of {', '.join(kernels)} on {', '.join(devices)}"
    )
    return f"Before and after: {what}"


def comparison_blocks(before: SweepRecords, after: SweepRecords) -> list[PageBlock]:
    """Returns the blocks of the page.

    Raises:
        UsageError: when they share no problem of the same kernel and device.
    """
    comparison, both = compared(before, after), matched(before, after)
    if not comparison.pairs:
        raise UsageError("the two sets of records share no problem of the same kernel and device; each needs a winner")
    names = _names(both)
    possible: list[PageBlock | None] = [
        Facts(tuple(_facts(comparison, before, after))),
        _changes(comparison, names),
        _configs(*both[0]) if len(both) == 1 else None,
        _problems(comparison, both, names),
        Heading("What else differs"),
        _origins(before, after),
        _statuses(both, names),
    ]
    return [block for block in possible if block is not None]


def _facts(comparison: Comparison, before: SweepRecords, after: SweepRecords) -> list[Fact]:
    facts = [
        Fact("problems", (comparison.told_problems(),)),
        Fact("change", (f"of the winners' times: {comparison.told_change()}",)),
    ]
    facts += [Fact("noise", (str(one),)) for one in comparison.noise] or [Fact("noise", ("unknown: no final rounds",))]
    if exchanged := comparison.told_exchanged():
        facts.append(Fact("exchanged", (exchanged,)))
    for name, own, others in (("only before", before, after), ("only after", after, before)):
        titles = {sweep.title for sweep in others}
        if alone := [sweep.title for sweep in own if sweep.title not in titles]:
            more = (f"and {len(alone) - TOLD_VALUES} more",) if len(alone) > TOLD_VALUES else ()
            facts.append(Fact(name, (*alone[:TOLD_VALUES], *more)))
    return facts


def _names(both: Sequence[tuple[SweepRecord, SweepRecord]]) -> dict[str, str]:
    """Returns title of a sweep -> short name of its problem."""
    sweeps = [sweep for sweep, _ in both]
    n_devices = len({sweep.device.name for sweep in sweeps})
    problems: dict[str, list[Mapping[str, Value]]] = {}
    for sweep in sweeps:
        problems.setdefault(sweep.kernel, []).append(sweep.problem)
    telling = {kernel: telling_fields(own) for kernel, own in problems.items()}
    names = {}
    for sweep in sweeps:
        fields = assignments({name: sweep.problem[name] for name in telling[sweep.kernel] if name in sweep.problem})
        kernel = sweep.kernel if len(problems) > 1 or not fields else ""
        device = f"on {sweep.device.name}" if n_devices > 1 else ""
        names[sweep.title] = " ".join(filter(None, (kernel, fields, device)))
    return names


def _changes(comparison: Comparison, names: dict[str, str]) -> Picture:
    """Shows the change of each problem over the noise, the slower ones first."""
    ordered = sorted(comparison.pairs, key=lambda pair: -pair.change)
    shown_names = [label(names[pair.title]) for pair in ordered]
    band = {
        "type": "bar",
        "orientation": "h",
        "name": "noise",
        "y": shown_names,
        "base": [round(-100 * pair.allowed, 3) for pair in ordered],
        "x": [round(200 * pair.allowed, 3) for pair in ordered],
        "marker": {"color": GRID},
        "width": 1,
        "hoverinfo": "skip",
    }
    changed = [_dots(relation, [pair for pair in ordered if pair.relation == relation], names) for relation in COLOURS]
    shown = plot_layout(
        110 + 20 * max(3, len(ordered)),
        xaxis=axis("change (%)", zeroline=True, zerolinecolor=MUTED),
        yaxis=category_axis(
            len(ordered), categoryorder="array", categoryarray=shown_names, dtick=1, tickfont={"size": 11}
        ),
    )
    return Picture(
        "How the winners' times changed",
        "A dot is a problem; left is faster. The grey band is the noise of repeated measurements.",
        {"data": [band, *(each for each in changed if each["x"])], "layout": shown},
    )


def _dots(relation: Relation, pairs: Sequence[Pair], names: dict[str, str]) -> PlotlyFigure:
    x, y = [round(100 * pair.change, 3) for pair in pairs], [label(names[pair.title]) for pair in pairs]
    text = [f"{y}<br>{seconds_text(p.before_s)} to {seconds_text(p.after_s)}" for y, p in zip(y, pairs, strict=True)]
    marker = {"color": COLOURS[relation], "size": 8}
    return dots(x, y, text, marker, "%{text}: %{x:+.2f} %", name=str(relation))


def _configs(sweep: SweepRecord, other: SweepRecord) -> Picture | None:
    """Shows the times of the configs that both searches measured; None if there are none."""
    common = [config for config in sweep.median_s if config in other.median_s]
    if not common:
        return None
    n_common, common = (
        len(common),
        sampled(sorted(common, key=sweep.median_s.__getitem__), n_first=N_BEST),
    )
    unit, size = unit_of(min(sweep.median_s[config] for config in common))
    x, y = ([in_unit(each.median_s[config], size) for config in common] for each in (sweep, other))
    ends = [min(*x, *y) / 1.1, max(*x, *y) * 1.1]
    text, marker = [label(each).replace(",", ",<br>") for each in common], {"color": BLUE, "size": 5, "opacity": 0.55}
    configs = dots(x, y, text, marker, f"%{{x}} to %{{y}} {unit}<br>%{{text}}", name="a config")
    equal = {"type": "scatter", "mode": "lines", "name": "no change", "line": {"color": MUTED, "width": 1}}
    shown = plot_layout(420, xaxis=log_axis(f"median before ({unit})"), yaxis=log_axis(f"median after ({unit})"))
    return Picture(
        f"The {n_common} configs that both searches measured",
        "A dot is a config; below the line it is faster than before." + sampling_text(n_common, best="fastest"),
        {"data": [{**equal, "x": ends, "y": ends, "hoverinfo": "skip"}, configs], "layout": shown},
    )


def _problems(comparison: Comparison, both: Sequence[tuple[SweepRecord, SweepRecord]], names: dict[str, str]) -> Table:
    of_title = {sweep.title: (sweep, other) for sweep, other in both}
    rows = []
    for pair in sorted(comparison.pairs, key=lambda pair: -pair.change):
        sweep, other = of_title[pair.title]
        assert sweep.winner and other.winner
        ratios = [other.median_s[config] / s for config, s in sweep.median_s.items() if config in other.median_s]
        configs = f"{100 * (median(ratios) - 1):+.2f} % of {len(ratios)}" if ratios else "-"
        winner, new = assignments(sweep.winner.config), assignments(other.winner.config)
        rows.append(
            (
                names[pair.title],
                seconds_text(pair.before_s),
                seconds_text(pair.after_s),
                f"{100 * pair.change:+.2f} %",
                pair.relation,
                configs,
                winner if pair.same_config else f"before {winner}; after {new}",
            )
        )
    return Table(
        "Problems",
        "One line for each problem in both sets. The median change of all configs that both measured shows whether all "
        "configs changed, or only the winner.",
        ("problem", "before", "after", "change", "", "all configs, median", "winner"),
        rows,
        code=("winner",),
    )


def _origins(before: SweepRecords, after: SweepRecords) -> Table:
    rows = []
    for name, pick in ORIGINS.items():
        sides = [sorted({text for sweep in sweeps if (text := pick(sweep))}) for sweeps in (before, after)]
        if any(sides):
            rows.append((name, *map(_values_text, sides), "same" if sides[0] == sides[1] else "differs"))
    return Table("Where and how they were measured", "", ("", "before", "after", ""), rows)


def _values_text(values: Sequence[str]) -> str:
    text = "; ".join(values[:TOLD_VALUES]) or "-"
    return text if len(values) <= TOLD_VALUES else f"{text} and {len(values) - TOLD_VALUES} more"


def _statuses(both: Sequence[tuple[SweepRecord, SweepRecord]], names: dict[str, str]) -> Table | None:
    """Lists configs whose status changed; None if there are none."""
    counts: Counter[tuple[Status, Status]] = Counter()
    first: dict[tuple[Status, Status], tuple[str, Config, Trial]] = {}
    for sweep, other in both:
        ended = {trial.config: trial for trial in other.trials}
        for trial in sweep.trials:
            if (now := ended.get(trial.config)) and now.status != trial.status:
                counts[trial.status, now.status] += 1
                first.setdefault((trial.status, now.status), (names[sweep.title], trial.config, now))
    if not counts:
        return None
    rows = [
        (n, *(status.words for status in change), problem, config, trial.message or "-")
        for change, n in counts.most_common()
        for problem, config, trial in [first[change]]
    ]
    return Table(
        "Configs whose status changed",
        "Each line shows its first config, with the message after the change.",
        ("configs", "before", "after", "first: problem", "config", "message"),
        rows,
        code=("config", "message"),
    )


def _settings_text(values: object) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) if isinstance(values, dict) else ""
