"""The roofline picture: rates of configs over their arithmetic intensity, below the measured limits of the device.

S. Williams, A. Waterman, D. Patterson: Roofline: An Insightful Visual Performance Model for Multicore Architectures,
Communications of the ACM 52, 2009.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis.roofline import BYTES, UNITS, RooflineLimit, ceilings_of, limit_of
from ..core.units import percent, seconds_text
from ..records.record import SweepRecord
from ..records.trial import Trial
from .blocks import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    N_BEST,
    ORANGE,
    Picture,
    PlotlyFigure,
    dots,
    label,
    log_axis,
    plot_layout,
    sampled,
    sampling_text,
)

DASHES = {"flops_per_s": "solid", "float16_per_s": "dash", "int8_per_s": "dot"}  # styles of the lines for UNITS
COLOURS = (BLUE, ORANGE, GREEN, "#7b4fb5", "#b0307a", "#0f8f8f", "#8a5a2b", "#6f7d00", "#5aa9e6", "#e08fb5")


@dataclass(frozen=True)
class RooflinePoint:
    """A config with its arithmetic intensity, in operations per byte, and its rate, in operations per second."""

    intensity: float
    flops_per_s: float
    text: str


def roofline_picture(sweep: SweepRecord) -> Picture | None:
    """Shows all configs of a sweep below the roofline; None if the work or the roofline is unknown."""
    drawn = sampled(sweep.measured, n_first=N_BEST)
    drawn += [t for t in sweep.measured if t.config == sweep.about.default and t not in drawn]
    points = {id(trial): point for trial in drawn if (point := point_of(trial, f"trial {trial.number}"))}
    ceilings = ceilings_of(sweep)
    if not points or not ceilings:
        return None
    first, default = sweep.measured[0], sweep.about.default
    is_default = {id(trial): trial.config == default and trial is not first for trial in drawn}
    groups = {
        "a config": ([p for key, p in points.items() if key != id(first) and not is_default[key]], BLUE),
        "the default": ([p for key, p in points.items() if is_default[key]], ORANGE),
        "the fastest of the search": ([p for key, p in points.items() if key == id(first)], GREEN),
    }
    limit = limit_of(sweep)
    return Picture(
        "Configs under the roofline of the device",
        "Up is faster. The lines are measured rates: of a large copy (the slope) and of arithmetic (the levels). All "
        "configs do the same work, so they lie on one vertical line."
        + (_limit_text(limit, ceilings) if limit else "")
        + sampling_text(len(sweep.measured), best="fastest"),
        _figure(ceilings, groups, limit),
    )


def _limit_text(limit: RooflineLimit, ceilings: Mapping[str, float]) -> str:
    """Returns a sentence on the ceiling that applies to a sweep, and on the others."""
    what = "the slope: moving the bytes" if limit.by_bytes else f"the level of {limit.name}: the arithmetic"
    others = [UNITS[name] for name in UNITS if name in ceilings and name not in limit.units]
    grey = f" Grey lines ({'; '.join(others)}) do not apply: this kernel's operations are for another unit."
    return f" The limit here is {what} takes at least {seconds_text(limit.least_s)}.{grey if others else ''}"


def of_sweeps(sweeps: Sequence[SweepRecord]) -> Picture | None:
    """Shows the fastest config of each sweep below the roofline of their device; None if too little is known."""
    found: dict[str, list[RooflinePoint]] = {}
    for sweep in sweeps:
        point = point_of(sweep.measured[0], f"{sweep.kernel} {sweep.about.problem_name}") if sweep.measured else None
        if point is not None:
            found.setdefault(sweep.kernel, []).append(point)
    ceilings = max(map(ceilings_of, sweeps), key=len, default={})  # older records contain fewer
    if not found or not ceilings:
        return None
    groups = {kernel: (points, COLOURS[i % len(COLOURS)]) for i, (kernel, points) in enumerate(found.items())}
    return Picture(
        "The fastest config of each problem, under the roofline of the device",
        "A dot on the slope moves bytes as fast as a large copy; one at a level computes as fast as its unit. "
        "Dots above the level of float32 belong to kernels on tensor cores; the tables of problems name the limit of "
        f"each.{_without_arithmetic(sweeps)}",
        _figure(ceilings, groups),
    )


def _without_arithmetic(sweeps: Sequence[SweepRecord]) -> str:
    """Returns a sentence on the sweeps that are not drawn, since they do no arithmetic; "" if there are none."""
    shares = [
        (sweep.kernel, sweep.measured[0].efficiency)
        for sweep in sweeps
        if sweep.measured and sweep.measured[0].gb_per_s and not sweep.measured[0].tflop_per_s
    ]
    if not shares:
        return ""
    counts = Counter(kernel for kernel, _ in shares)
    kernels = ", ".join(f"{kernel} ({n})" for kernel, n in counts.items())
    efficiencies = [share for _, share in shares if share is not None]
    ends = (
        f", and they reach {percent(min(efficiencies))} to {percent(max(efficiencies))} of the slope"
        if efficiencies
        else ""
    )
    return f" Not drawn: problems of {kernels} that have no arithmetic; only bytes limit them{ends}."


def point_of(trial: Trial, text: str) -> RooflinePoint | None:
    """Returns the point of a trial; None if its work has no operations, or its rates are unknown."""
    if not trial.gb_per_s or not trial.tflop_per_s or trial.gb_per_s < 0 or trial.tflop_per_s < 0:
        return None
    rates = f"{trial.tflop_per_s:.4g} TFLOP/s, {trial.gb_per_s:.4g} GB/s"
    return RooflinePoint(
        1e3 * trial.tflop_per_s / trial.gb_per_s, 1e12 * trial.tflop_per_s, f"{label(text)}<br>{rates}"
    )


def _figure(
    ceilings: Mapping[str, float],
    groups: Mapping[str, tuple[Sequence[RooflinePoint], str]],
    limit: RooflineLimit | None = None,
) -> PlotlyFigure:
    """Returns the figure; ``limit``: the limit of all points. Lines that do not apply are grey, below the others."""
    points = [point for members, _ in groups.values() for point in members]
    ridges = [ceilings[name] / ceilings[BYTES] for name in UNITS if name in ceilings]
    low = min(min(p.intensity for p in points), *ridges) / 4
    high = max(max(p.intensity for p in points), *ridges) * 4
    applies = {name: limit is None or name in limit.units for name in UNITS if name in ceilings}
    data = [_roof(ceilings, name, low, high, applies[name]) for name in sorted(applies, key=applies.__getitem__)]
    for name, (members, colour) in groups.items():
        if members:
            data.append(_dots(name, members, colour))
    shown = plot_layout(
        440,
        xaxis=log_axis("arithmetic intensity (operations per byte)", dtick=1),
        yaxis=log_axis("TFLOP/s (of int8: TOP/s)", dtick=1),
    )
    return {"data": data, "layout": shown}


def _roof(ceilings: Mapping[str, float], name: str, low: float, high: float, applies: bool) -> PlotlyFigure:
    title, slope, level = UNITS[name], ceilings[BYTES], ceilings[name]
    does_not = "" if applies else " (does not apply)"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{title}{does_not}",
        "line": {"color": INK if applies else FAINT, "width": 1.5, "dash": DASHES[name]},
        "x": [low, level / slope, high],
        "y": [1e-12 * min(level, slope * low), 1e-12 * level, 1e-12 * level],
        "hovertemplate": f"{title}: {1e-12 * level:.4g} TFLOP/s; {1e-9 * slope:.4g} GB/s{does_not}<extra></extra>",
    }


def _dots(name: str, members: Sequence[RooflinePoint], colour: str) -> PlotlyFigure:
    size, opacity = (7, 0.7) if len(members) > 1 else (11, 1.0)
    x, y = [float(f"{p.intensity:.5g}") for p in members], [float(f"{1e-12 * p.flops_per_s:.5g}") for p in members]
    marker = {"color": colour, "size": size, "opacity": opacity}
    return dots(x, y, [p.text for p in members], marker, name=label(name))
