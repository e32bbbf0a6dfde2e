"""Collects experience with kernels from recorded sweeps, and measures the losses of its predictions.

A recorded problem is left out and predicted from the others: from all of them, and only from other devices of its
architecture, as for a GPU without records. The sweep that was left out gives the loss of the prediction.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from statistics import fmean

from ..core.config import Config
from ..core.definition import AnyKernel
from ..records.as_recorded import problem_of
from ..records.record import SweepRecord
from ..transfer.experience import DEFAULT, METHODS, MODEL, NEIGHBOUR, Experience, MeasuredProblem, experience_of, ranked

MOST_LEFT_OUT = 24  # problems per kernel and device that are left out; the random choice is fixed
WORST = 1.0  # losses are capped here, at twice the time, when methods are compared
UNTOLD = 0.05  # assumed loss of a choice that was not measured: most are less, and some are far more
Losses = dict[str, list[float | None]]  # device or architecture -> losses


def experience_with(kernel: AnyKernel, sweeps: Iterable[SweepRecord]) -> Experience | None:
    """Returns the experience from one kernel's sweeps, with the default method; None if nothing was measured."""
    measured = [measured_problem(sweep) for sweep in sweeps if sweep.median_s]
    try:
        return experience_of(kernel, measured)
    except ValueError:
        return None


def best_method(experience: Experience, kernel: AnyKernel, sweeps: Sequence[SweepRecord]) -> tuple[Experience, Losses]:
    """Returns the experience with the method that loses least on left-out problems, and its losses.

    Among equal methods, NEIGHBOUR wins, since its configs have run before.
    """
    losses_of = {method: left_out_losses(replace(experience, method=method), kernel, sweeps) for method in METHODS}
    best = min(
        (NEIGHBOUR, MODEL, DEFAULT),
        key=lambda method: _mean([loss for losses in losses_of[method].values() for loss in losses]),
    )
    return replace(experience, method=best), losses_of[best]


def left_out_losses(experience: Experience, kernel: AnyKernel, sweeps: Sequence[SweepRecord]) -> Losses:
    """Returns the losses of predictions for left-out problems, by device and by architecture.

    None: the sweep did not measure the predicted config.
    """
    losses: defaultdict[str, list[float | None]] = defaultdict(list)
    for sweep in _drawn(sweeps):
        fields = sweep.about.problem
        others = experience.without(partial(_is_of_problem, fields))
        elsewhere = others.without(partial(_is_on_device, sweep.device.name))
        for where, rest in ((sweep.device.name, others), (sweep.device.arch, elsewhere)):
            if rest.knows(sweep.device) and (config := _first(rest, kernel, sweep)) is not None:
                losses[where].append(sweep.loss(config))
    return dict(losses)


def _is_of_problem(fields: Mapping[str, object], one: MeasuredProblem) -> bool:
    return dict(one.problem) == dict(fields)


def _is_on_device(name: str, one: MeasuredProblem) -> bool:
    return one.device.name == name


def _first(experience: Experience, kernel: AnyKernel, sweep: SweepRecord) -> Config | None:
    try:
        return ranked(experience, kernel, problem_of(kernel, sweep.about), sweep.device, 1)[0]
    except Exception:  # the definition no longer allows the problem; it may raise any exception
        return None


def _drawn(sweeps: Sequence[SweepRecord]) -> list[SweepRecord]:
    """Returns some sweeps of each device, for the same problems on all devices if possible."""
    by_device: defaultdict[str, list[SweepRecord]] = defaultdict(list)
    for sweep in sweeps:
        if sweep.median_s:
            by_device[sweep.device.name].append(sweep)
    drawn = []
    for own in by_device.values():
        own.sort(key=lambda sweep: Random(sweep.about.problem_name).random())
        drawn += own[:MOST_LEFT_OUT]
    return drawn


def measured_problem(sweep: SweepRecord) -> MeasuredProblem:
    """Returns the measured times of a sweep, which must have some."""
    best = min(sweep.median_s.values())
    pairs = sorted(((config, median / best) for config, median in sweep.median_s.items()), key=lambda pair: pair[1])
    return MeasuredProblem(sweep.about.problem, sweep.device, tuple(pairs), best)


def _mean(losses: Sequence[float | None]) -> float:
    if all(loss is None for loss in losses):
        return WORST
    return fmean(UNTOLD if loss is None else min(loss, WORST) for loss in losses)
