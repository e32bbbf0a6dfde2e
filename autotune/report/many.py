"""The page of many sweeps: for each device and kernel a map over the problems' fields, the speed-ups, and a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..analysis.experiences import recorded_experiences
from ..analysis.fields import assignments, common_fields, own_fields, telling_fields
from ..analysis.roofline import limit_of
from ..analysis.show import Overview, overview, place, proof, winner_text
from ..core.config import Value
from ..core.definition import AnyKernel
from ..core.units import counted, percent, seconds_text, speed_up_cell, speed_up_text
from ..records.record import SweepRecord
from ..runtime.wisdom import Loss
from . import lookup_costs, maps, parameters_of_many, roofs
from .blocks import (
    BLUE,
    MUTED,
    Fact,
    Facts,
    Heading,
    PageBlock,
    Picture,
    Table,
    category_axis,
    dots,
    error_bars,
    label,
    log_axis,
    plot_layout,
)


@dataclass(frozen=True)
class SweepLine:
    """One of many sweeps: its overview, and the fields of its problem that differ between the sweeps."""

    sweep: SweepRecord
    told: Overview
    name: str  # the fewest fields that distinguish it from the others
    fields: dict[str, Value]
    efficiency: float | None  # share of the measured roofline


def overview_title(sweeps: Sequence[SweepRecord]) -> str:
    """Returns the title of the page."""
    kernels, devices = sorted({s.kernel for s in sweeps}), sorted({s.device.name for s in sweeps})
    return f"{counted(len(sweeps), 'sweep')} of {', '.join(kernels)} on {', '.join(devices)}"


def overview_blocks(sweeps: Sequence[SweepRecord], kernels: Mapping[str, AnyKernel]) -> list[PageBlock]:
    """Returns the blocks for each device and kernel, in the order of their names.

    ``kernels``: name -> definition for kernels that are not installed, from which the lookup's losses are computed.
    """
    overviews = sorted(((overview(sweep), sweep) for sweep in sweeps), key=lambda pair: place(pair[0]))
    known = recorded_experiences(sweeps, kernels)
    blocks: list[PageBlock] = []
    for device, of_device in groupby(overviews, key=lambda pair: pair[0].device):
        its_own = list(of_device)
        if roof := roofs.of_sweeps([sweep for _, sweep in its_own]):
            blocks += [Heading(device), roof]
        for kernel, pairs in groupby(its_own, key=lambda pair: pair[0].kernel):
            of_kernel = [loss for loss in known[kernel].losses if loss.where == device] if kernel in known else []
            blocks += _of_kernel(kernel, device, list(pairs), of_kernel)
    return blocks


def _of_kernel(
    kernel: str, device: str, pairs: list[tuple[Overview, SweepRecord]], losses: Sequence[Loss]
) -> list[PageBlock]:
    problems = [summary.problem for summary, _ in pairs]
    common, telling = common_fields([kernel] * len(pairs), problems)[kernel], telling_fields(problems)
    lines = [
        SweepLine(
            sweep,
            summary,
            _name({name: summary.problem[name] for name in telling if name in summary.problem}) or kernel,
            own_fields(summary.problem, common),
            proven.efficiency if (proven := proof(sweep, sweep.winner)) else None,
        )
        for summary, sweep in pairs
    ]
    facts = [Fact("sweeps", (str(len(lines)),))]
    if common:
        facts.append(Fact("all have", (assignments(common),), is_code=True))
    measured = [(line.fields, line.efficiency, _hover(line)) for line in lines if line.efficiency is not None]
    possible: list[PageBlock | None] = [
        Heading(f"{kernel} on {device}"),
        Facts(tuple(facts)),
        maps.efficiency(measured),
        _gains(lines, telling),
        lookup_costs.tiers(losses),
        *parameters_of_many.parameter_blocks([sweep for _, sweep in pairs]),
        _table(lines),
    ]
    return [block for block in possible if block is not None]


def _name(values: Mapping[str, Value]) -> str:
    """Returns only the values if there are several, since their names would fill the width of the picture."""
    return ", ".join(map(str, values.values())) if len(values) > 1 else assignments(values)


def _gains(lines: Sequence[SweepLine], telling: Sequence[str]) -> Picture | None:
    """Shows the speed-up of each winner over the default; None if no default was measured."""
    rows = [line for line in lines if line.told.speed_up]
    if not rows:
        return None
    speed_ups = [line.told.speed_up or 1.0 for line in rows]
    intervals = [line.sweep.speed_up_interval or (s, s) for line, s in zip(rows, speed_ups, strict=True)]
    x, y, text = [round(s, 4) for s in speed_ups], [label(line.name) for line in rows], list(map(_hover, rows))
    shown_dots = dots(x, y, text, {"color": BLUE, "size": 7}, error_x=error_bars(speed_ups, intervals))
    at_one = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": MUTED, "width": 1}}
    shown = plot_layout(
        90 + 17 * len(rows),
        xaxis=log_axis("speed-up (times)"),
        yaxis=category_axis(len(rows), dtick=1, tickfont={"size": 11}),
        shapes=[at_one],
    )
    return Picture(
        "Speed-up of the winner over the default config",
        "A dot is the default's median divided by the winner's; its bar is the range that both 95 % intervals allow."
        + (f" On the left are the values of {', '.join(telling)}." if len(telling) > 1 else ""),
        {"data": [shown_dots], "layout": shown},
    )


def _table(lines: Sequence[SweepLine]) -> Table:
    names = list(dict.fromkeys(name for line in lines for name in line.fields))
    columns = (*names, "trials", "failed", "best", "default", "speed-up", "of roofline", "limited by", "winner")
    rows = [
        (
            *(line.fields.get(name, "-") for name in names),
            line.told.n_trials,
            line.told.n_failed,
            seconds_text(line.told.best_s),
            seconds_text(line.told.default_s),
            speed_up_cell(line.told.speed_up, line.told.speed_up_interval),
            percent(line.efficiency),
            limit.name if (limit := limit_of(line.sweep)) else "-",
            winner_text(line.told),
        )
        for line in lines
    ]
    return Table(
        "Problems",
        "One line for each sweep, with the fields of the problem that differ; times are medians. The roofline is the "
        "measured rate of the device for the kernel's limit: moving bytes, or the arithmetic of one unit.",
        columns,
        rows,
        code=("winner",),
    )


def _hover(line: SweepLine) -> str:
    summary = line.told
    speed_up = "" if summary.speed_up is None else f", {speed_up_text(summary.speed_up, summary.speed_up_interval)}"
    share = "" if line.efficiency is None else f", {percent(line.efficiency)} of the roofline"
    return f"{label(assignments(line.fields) or line.told.kernel)}<br>{seconds_text(summary.best_s)}{speed_up}{share}"
