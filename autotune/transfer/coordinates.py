"""Coordinates of (config, problem, device), in fixed units, so that length scales also hold for other problems.

The search's own columns (features.py) depend on the configs of one problem. These columns do not depend on the set of
configs and problems: a parameter is scaled by all values that its space declares, and a field is measured in octaves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..core.config import Config, Value
from ..core.parameter import Parameter
from .features import ABSENT, is_number, levels_of, log_or_rank, powers_of_two
from .neighbour import MISMATCH, octave
from .off_default import KNOWN

DEVICE = "device"  # the group of the column with the device's distance in octaves
Domain = Mapping[str, Sequence[Value]]  # the values of each parameter


@dataclass(frozen=True)
class TransferPoint:
    """A configuration at a problem: the problem's fields, the distance of its device in octaves, its KNOWN columns (or
    the first of them), and its time relative to the best.
    """

    config: Config
    fields: Mapping[str, object]
    away: float
    known: np.ndarray
    time: float


@dataclass(frozen=True)
class Coordinates:
    """``columns``: float [n_points, n_columns]. Column k belongs to the group ``names[groups[k]]``, whose columns share
    a length scale.
    """

    columns: np.ndarray
    groups: np.ndarray  # int [n_columns]
    names: tuple[str, ...]


def domain_of(parameters: Mapping[str, Parameter]) -> Domain:
    """Returns the values that a space declares for each parameter."""
    return {name: parameter.values for name, parameter in parameters.items()}


def coordinates(points: Sequence[TransferPoint], domain: Domain) -> Coordinates:
    """Returns the coordinates of ``points``.

    - a number: its logarithm (its rank if one of its values is zero or less); if its values are not all powers of two,
      also how often two divides it;
    - any other type: one column for each value;
    - a parameter that some configs lack: whether it is present; where it is absent, its own columns are 1/2;
    - two numbers of several values each: the logarithm of their product;
    - KNOWN columns: how launches fill the device, in octaves, and the distance from the kernel's default; the distance
      of the device in octaves;
    - a field of the problem: octaves, or MISMATCH between two words.

    ``domain``: the values of each parameter, which scale its columns.
    """
    configs = list(dict.fromkeys(point.config for point in points))
    number = {config: row for row, config in enumerate(configs)}
    rows = [number[point.config] for point in points]
    groups_of = {name: [column[rows] for column in group] for name, group in _of_configs(configs, domain).items()}
    filled = np.array([point.known for point in points]).reshape(len(points), -1)
    groups_of.update({name: [column] for name, column in zip(KNOWN, filled.T, strict=False)})
    groups_of[DEVICE] = [np.array([point.away for point in points])]
    for name in dict.fromkeys(name for point in points for name in point.fields):
        groups_of[f"field {name}"] = columns_of_field([point.fields.get(name) for point in points])
    groups = [number for number, group in enumerate(groups_of.values()) for _ in group]
    columns = np.array([column for group in groups_of.values() for column in group]).T
    return Coordinates(np.ascontiguousarray(columns), np.array(groups), tuple(groups_of))


def _of_configs(configs: Sequence[Config], domain: Domain) -> dict[str, list[np.ndarray]]:
    """Returns the columns of the parameters by group, each float [n_configs]."""
    levels = levels_of(configs, _with_others(domain, configs))
    columns_of: dict[str, list[np.ndarray]] = {}
    factors: list[tuple[str, np.ndarray, float]] = []  # name, logarithm above the least, and their range
    presence: set[bytes] = set()
    for name, values, level in zip(levels.names, levels.values, levels.table.T, strict=True):
        is_present = level != ABSENT
        if (
            not is_present.all() and is_present.tobytes() not in presence
        ):  # parameters present in the same configs share it
            presence.add(is_present.tobytes())
            columns_of[f"{name}?"] = [is_present.astype(float)]
        if len(values) < 2:
            continue
        if not all(is_number(value) for value in values):
            columns_of[name] = [(level == v) / np.sqrt(2.0) for v in range(len(values))]
            continue
        size = log_or_rank(values)
        columns_of[name] = [_spread(size, level)]
        if len(values) > 2:
            twos = powers_of_two(values)
            if any(2.0**power != abs(float(value)) for power, value in zip(twos, values, strict=True)):
                columns_of[f"2^ in {name}"] = [_spread(twos, level)]
            if min(float(value) for value in values) > 0:
                factors.append((name, np.where(is_present, (size - size.min())[level], 0.0), float(np.ptp(size))))
    for (a, log_a, range_a), (b, log_b, range_b) in combinations(factors, 2):
        columns_of[f"{a} * {b}"] = [(log_a + log_b) / max(range_a + range_b, 1e-12)]
    return columns_of


def _with_others(domain: Domain, configs: Sequence[Config]) -> Domain:
    """Returns the domain with all other values that occur, since an older space may have had others."""
    whole = {name: dict.fromkeys(values) for name, values in domain.items()}
    for config in configs:
        for name, value in config.items():
            whole.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in whole.items()}


def _spread(of_level: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Maps ``of_level`` to [0, 1], float [n_configs]; 1/2 where the parameter is absent."""
    scaled = (of_level - of_level.min()) / max(float(np.ptp(of_level)), 1e-12)
    return np.asarray(np.where(level == ABSENT, 0.5, scaled[level]))


def columns_of_field(values: Sequence[object]) -> list[np.ndarray]:
    """Returns the columns of a problem's field, each float [n_values]; different words are MISMATCH apart."""
    given = [_hashable(value) for value in values]
    if all(is_number(value) for value in given):
        return [np.array([octave(float(value)) for value in given])]  # type: ignore[arg-type]
    return [MISMATCH / 2**0.5 * np.array([value == word for value in given]) for word in dict.fromkeys(given)]


def _hashable(value: object) -> object:
    """Returns ``value``; lists (which stand for tuples in records) and objects as text."""
    if isinstance(value, (list, tuple)):
        return str(list(value))
    return str(value) if isinstance(value, dict) else value
