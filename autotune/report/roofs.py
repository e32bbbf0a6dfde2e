"""The roofline: rates of configs against their arithmetic intensity, under what the device was measured to reach.

S. Williams, A. Waterman, D. Patterson: Roofline: An Insightful Visual Performance Model for Multicore Architectures,
Communications of the ACM 52, 2009.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..records.record import SweepRecord
from ..records.trial import Trial
from . import sampled
from .blocks import BLUE, GREEN, MUTED, ORANGE, Picture, PlotlyFigure, label, log_axis, plot_layout

ROOFS = {
    "flops_per_s": ("float32", ""),
    "float16_per_s": ("tensor cores, float16", "dash"),
    "int8_per_s": ("tensor cores, int8", "dot"),
}


@dataclass(frozen=True)
class RooflinePoint:
    """A config at its arithmetic intensity, in operations a byte, and its rate, in operations a second."""

    intensity: float
    flops_per_s: float
    text: str


def roofline_picture(sweep: SweepRecord) -> Picture | None:
    """Shows all configs of a sweep under the roofline; None where the work or the roofline is not known."""
    drawn = sampled.sampled(sweep.measured, n_first=sampled.N_BEST)
    drawn += [t for t in sweep.measured if t.config == sweep.about.default and t not in drawn]
    points = {id(trial): point for trial in drawn if (point := point_of(trial, f"trial {trial.number}"))}
    known = ceilings(sweep)
    if not points or not known:
        return None
    first, default = sweep.measured[0], sweep.about.default
    is_default = {id(trial): trial.config == default and trial is not first for trial in drawn}
    groups = {
        "a config": ([p for key, p in points.items() if key != id(first) and not is_default[key]], BLUE),
        "the default": ([p for key, p in points.items() if is_default[key]], ORANGE),
        "the fastest of the search": ([p for key, p in points.items() if key == id(first)], GREEN),
    }
    return Picture(
        "Configs under the roofline of the device",
        "Up is faster: no config can pass the lines, which are the measured rates of a large copy (the slope) and of "
        "arithmetic (the levels). All configs owe the same work, so they stand above one another."
        + sampled.sampling_text(len(sweep.measured), best="fastest"),
        _figure(known, groups),
    )


def of_sweeps(sweeps: Sequence[SweepRecord]) -> Picture | None:
    """Shows the fastest config of each sweep under the roofline of their device; None where too little is known."""
    found: dict[str, list[RooflinePoint]] = {}
    for sweep in sweeps:
        point = point_of(sweep.measured[0], f"{sweep.kernel} {sweep.about.problem_name}") if sweep.measured else None
        if point is not None:
            found.setdefault(sweep.kernel, []).append(point)
    known = max(map(ceilings, sweeps), key=len, default={})  # older records know fewer
    if not found or not known:
        return None
    colours = (BLUE, ORANGE, GREEN, "#7b4fb5", "#b0307a", "#0f8f8f")
    groups = {kernel: (points, colours[i % len(colours)]) for i, (kernel, points) in enumerate(found.items())}
    return Picture(
        "The fastest config of each problem, under the roofline of the device",
        "A dot on the slope moves bytes as fast as a large copy; one at a level computes as fast as the device can.",
        _figure(known, groups),
    )


def ceilings(sweep: SweepRecord) -> dict[str, float]:
    """Returns the measured roofline by its members' names; {} where it is not known."""
    recorded: Mapping[str, Any] = (sweep.outcome.content.get("ceilings") if sweep.outcome else None) or {}
    known = {
        name: float(value)
        for name, value in recorded.items()
        if type(value) in (int, float) and isfinite(value) and value > 0
    }
    return known if "bytes_per_s" in known and any(name in known for name in ROOFS) else {}


def point_of(trial: Trial, text: str) -> RooflinePoint | None:
    """Returns where a trial stands; None where it owes no operations, or its rates are not known."""
    if not trial.gb_per_s or not trial.tflop_per_s or trial.gb_per_s < 0 or trial.tflop_per_s < 0:
        return None
    rates = f"{trial.tflop_per_s:.4g} TFLOP/s, {trial.gb_per_s:.4g} GB/s"
    return RooflinePoint(
        1e3 * trial.tflop_per_s / trial.gb_per_s, 1e12 * trial.tflop_per_s, f"{label(text)}<br>{rates}"
    )


def _figure(known: Mapping[str, float], groups: Mapping[str, tuple[Sequence[RooflinePoint], str]]) -> PlotlyFigure:
    points = [point for members, _ in groups.values() for point in members]
    ridges = [known[name] / known["bytes_per_s"] for name in ROOFS if name in known]
    low = min(min(p.intensity for p in points), *ridges) / 4
    high = max(max(p.intensity for p in points), *ridges) * 4
    data = [_roof(known, name, low, high) for name in ROOFS if name in known]
    for name, (members, colour) in groups.items():
        if members:
            data.append(_dots(name, members, colour))
    shown = plot_layout(
        420,
        xaxis=log_axis("arithmetic intensity (operations a byte)", dtick=1),
        yaxis=log_axis("TFLOP/s (of int8: TOP/s)", dtick=1),
    )
    return {"data": data, "layout": shown}


def _roof(known: Mapping[str, float], name: str, low: float, high: float) -> PlotlyFigure:
    told, dash = ROOFS[name]
    slope, level = known["bytes_per_s"], known[name]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": told,
        "line": {"color": MUTED, "width": 1.5, "dash": dash or "solid"},
        "x": [low, level / slope, high],
        "y": [1e-12 * min(level, slope * low), 1e-12 * level, 1e-12 * level],
        "hovertemplate": f"{told}: {1e-12 * level:.4g} TFLOP/s; {1e-9 * slope:.4g} GB/s<extra></extra>",
    }


def _dots(name: str, members: Sequence[RooflinePoint], colour: str) -> PlotlyFigure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(name),
        "marker": {"color": colour, "size": 7 if len(members) > 1 else 11, "opacity": 0.7 if len(members) > 1 else 1.0},
        "x": [float(f"{p.intensity:.5g}") for p in members],
        "y": [float(f"{1e-12 * p.flops_per_s:.5g}") for p in members],
        "text": [p.text for p in members],
        "hovertemplate": "%{text}<extra></extra>",
    }
