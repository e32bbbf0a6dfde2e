"""Learns from recorded sweeps of a kernel, and measures on problems that it leaves out how much its choices lose.

A choice is one of the configs that the left-out sweep measured, and is compared with the best of them. This one may
itself miss the best of all: what sweeps of so many trials miss in the median (``runtime.bounds``) is added.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, exp, log
from statistics import median
from typing import Any

import numpy as np

from ..core.config import Config
from ..core.definition import Kernel
from ..runtime.bounds import LOSS_AFTER, loss_after
from ..runtime.lookup import ARCHITECTURE, DEFAULT, NEAREST, PREDICTED
from ..runtime.wisdom import Loss
from .distance import SAME_ARCHITECTURE, SAME_DEVICE, apart, kinship
from .experience import Experience, MeasuredProblem, by_both
from .model_columns import ModelColumns
from .occupancy import occupancy
from .trees import Trees

CAP = 1.5  # relative times are capped here: how slow a slow config is carries no information about fast ones
N_FOLDS = 5  # groups of problems, each of which is left out once
BIN = 8  # left-out problems that a row of losses has at least, if it is not the only one
MOST_ROWS = 8
LEAST = 0.01  # lesser losses and predictions are noise
COVERAGE = 0.9  # share of choices that lose no more than the bound
OF_OTHER_KERNELS = 0.3  # the bound that most choices of recorded kernels have; few problems prove no lower one
DECIMALS = 4


@dataclass(frozen=True)
class _Learnt:
    """A recorded problem, ready to be learnt from: the columns of its configs, and log(time / best)."""

    given: MeasuredProblem
    rule: Config
    table: np.ndarray
    values: np.ndarray


def learnt(kernel: Kernel[Any], problems: Iterable[MeasuredProblem]) -> Experience:
    """Returns the experience without losses; raises ValueError if nothing was measured.

    Problems that the present definition refuses are left out.
    """
    return _experience(kernel, *_prepared(kernel, problems))


def with_losses(kernel: Kernel[Any], problems: Iterable[MeasuredProblem]) -> Experience:
    """Returns the experience with the losses of its choices; raises ValueError if nothing was measured."""
    columns, prepared = _prepared(kernel, problems)
    experience = _experience(kernel, columns, prepared)
    lost = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for where, others, left_out in _left_out(prepared):
        table = np.vstack([one.table for one in left_out])
        everything = by_both(*(_fitted(others, n)(table[:, :n]) for n in (len(columns.names), columns.n_plain)))
        ends = np.cumsum([len(one.table) for one in left_out])
        for one, predictions in zip(left_out, np.split(everything, ends[:-1]), strict=True):
            for tier, predicted, loss in _lost(one, predictions, [other.given for other in others]):
                lost[where or one.given.device.name, tier].append((predicted, loss))
    rows = (row for (where, tier), pairs in sorted(lost.items()) for row in _rows(where, tier, pairs))
    return replace(experience, losses=tuple(rows))


def _prepared(kernel: Kernel[Any], problems: Iterable[MeasuredProblem]) -> tuple[ModelColumns, list[_Learnt]]:
    able = []
    for one in problems:
        configs = [config for config, _ in one.measured]
        with suppress(Exception):  # another definition may have recorded what this one refuses, and raise anything
            problem = kernel.problem(dict(one.problem))
            rule = kernel.default_config(problem, one.device)
            occupancy(kernel, problem, configs, one.device)
            able += [(one, problem, rule, configs)] if configs else []
    columns = ModelColumns.of((one.problem, configs) for one, _, _, configs in able)
    prepared = []
    for one, problem, rule, configs in able:
        table = columns.table(kernel, problem, one.device, configs, rule)
        values = np.log(np.minimum([time for _, time in one.measured], CAP))
        prepared.append(_Learnt(one, rule, table, values))
    return columns, prepared


def _experience(kernel: Kernel[Any], columns: ModelColumns, prepared: Sequence[_Learnt]) -> Experience:
    if not prepared:
        raise ValueError(f"nothing was measured of {kernel.name}")
    kept = tuple(replace(one.given, measured=one.given.measured[:1]) for one in prepared)
    by_rule, alone = (_fitted(prepared, n) for n in (len(columns.names), columns.n_plain))
    return Experience(kernel.name, kept, columns, by_rule, alone)


def _fitted(prepared: Sequence[_Learnt], n_columns: int) -> Trees:
    """Returns trees of the first columns. A sweep of four times as many trials counts twice as much."""
    weights = np.concatenate([np.full(len(one.values), len(one.values) ** -0.5) for one in prepared])
    table = np.vstack([one.table[:, :n_columns] for one in prepared])
    return Trees.fitted(table, np.concatenate([one.values for one in prepared]), weights / weights.mean())


# ---------------------------------------------------------------------- leaving out
def _left_out(prepared: Sequence[_Learnt]) -> Iterator[tuple[str, list[_Learnt], list[_Learnt]]]:
    """Yields (where its losses hold, what remains, what is left out): problems, on all devices; then whole devices, for
    others of their architecture. "": on the own device.
    """
    names = sorted({_name(one) for one in prepared}, key=lambda name: (zlib.crc32(name.encode()), name))
    n_folds = min(N_FOLDS, len(names))
    for fold in range(n_folds if len(names) > 1 else 0):
        out = set(names[fold::n_folds])
        yield "", [one for one in prepared if _name(one) not in out], [one for one in prepared if _name(one) in out]
    for device in {one.given.device.name: one.given.device for one in prepared}.values():
        others = [one for one in prepared if one.given.device.name != device.name]
        if any(kinship(one.given.device, device) == SAME_ARCHITECTURE for one in others):
            yield device.arch, others, [one for one in prepared if one.given.device.name == device.name]


def _name(one: _Learnt) -> str:
    return repr(sorted((name, str(value)) for name, value in one.given.problem.items()))


def _lost(one: _Learnt, predicted: np.ndarray, others: Sequence[MeasuredProblem]) -> Iterator[tuple[str, float, float]]:
    """Yields (tier, predicted log time, loss) of the choice of each tier, as far as its config was measured."""
    missed = loss_after(len(one.values), one.given.n_configs) or LOSS_AFTER[min(LOSS_AFTER)]
    place = {config: row for row, (config, _) in enumerate(one.given.measured)}
    chosen: dict[str, Config | None] = {DEFAULT: one.rule, PREDICTED: one.given.measured[int(predicted.argmin())][0]}
    for tier, kin in ((NEAREST, SAME_DEVICE), (ARCHITECTURE, SAME_ARCHITECTURE)):
        near = (other for other in others if kinship(other.device, one.given.device) == kin)
        nearest = min(near, key=lambda other: apart(other.problem, one.given.problem), default=None)
        chosen[tier] = nearest.measured[0][0] if nearest else None
    for tier, config in chosen.items():
        if config is not None and (row := place.get(config)) is not None:
            loss = one.given.measured[row][1] * (1 + missed[0]) - 1
            yield tier, float(predicted[row]), loss


def _rows(where: str, tier: str, pairs: list[tuple[float, float]]) -> list[Loss]:
    """Returns the losses of choices in up to MOST_ROWS rows by what was predicted, in which no bound decreases.

    log(LEAST + loss) is a line over log(predicted), by least squares; what it leaves over has a median and a bound.
    """
    predicted, losses = np.array(sorted(pairs)).T
    x, y = np.log(np.maximum(predicted, LEAST)), np.log(LEAST + losses)
    away = x - x.mean()
    place = ceil(COVERAGE * (len(y) + 1)) - 1  # nine of ten further ones of the same distribution do not exceed it
    slope = min(1.0, max(0.0, float(away @ y) / max(LEAST, float(away @ away)))) if place < len(y) else 0.0
    left = np.sort(y - slope * x)
    least = 0.0 if place < len(y) else OF_OTHER_KERNELS
    found = []
    for part in np.array_split(predicted, max(1, min(MOST_ROWS, len(left) // BIN))):
        at = slope * log(max(LEAST, median(part)))
        middle, most = (max(0.0, exp(each + at) - LEAST) for each in (median(left), left[min(place, len(left) - 1)]))
        up_to = ceil(float(part[-1]) * 10**DECIMALS) / 10**DECIMALS
        found.append(Loss(where, tier, up_to, len(left), round(middle, DECIMALS), round(max(least, most), DECIMALS)))
    return found
