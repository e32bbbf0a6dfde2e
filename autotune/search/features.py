"""Turns configs into numbers: levels, which compare values, and columns, which measure distances between configs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np

from ..core.config import Config, Value
from ..recommend.distance import is_number

ABSENT = -1  # the level of a parameter that a config lacks
SAME = 1 - 1e-9  # least cosine of the angle between columns that count as equal up to an affine map


@dataclass(frozen=True)
class Levels:
    """``table[i, j]`` is the index in ``values[j]`` of config i's value of ``names[j]``; -1 if it has none."""

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    table: np.ndarray  # int [n_configs, n_names]

    def differences(self, row: int) -> np.ndarray:
        """Counts the parameters in which each config differs from ``row``, int [n_configs].

        A parameter that one of the two lacks does not count: another ALGORITHM is one step away, whatever parameters
        belong to it.
        """
        mine = self.table[row]
        differ: np.ndarray = ((self.table != mine) & (self.table != ABSENT) & (mine != ABSENT)).sum(axis=1)
        return differ

    def first_difference(self, rows: np.ndarray, row: int) -> np.ndarray:
        """Returns the index of the first parameter in which each of ``rows`` differs from ``row``, int [n_rows]."""
        return np.asarray(np.argmax(self.table[rows] != self.table[row], axis=1))


@dataclass(frozen=True)
class Features:
    """Coordinates of configs; their weighted distances measure how similar two configs are.

    ``columns[i, k]``: coordinate k of config i, in [0, 1], float [n_configs, n_columns]. Columns with the same
    ``groups[k]`` share a length scale. ``names``: the name of each group, for people.
    """

    columns: np.ndarray
    groups: np.ndarray  # int [n_columns]
    names: tuple[str, ...]

    @property
    def n_groups(self) -> int:
        return len(self.names)


def levels_of(configs: Sequence[Config], domain: Mapping[str, Sequence[Value]] | None = None) -> Levels:
    """Returns levels: numbers are in ascending order, other values in the order of their text.

    ``domain``: the values of each parameter; by default, the values that occur.
    """
    names = tuple(domain or dict.fromkeys(name for config in configs for name in config))
    values, columns = [], []
    for name in names:
        given = [config.get(name) for config in configs]
        occurring = given if domain is None else domain[name]
        distinct = tuple(sorted({v for v in occurring if v is not None}, key=_natural))
        rank: dict[Value | None, int] = {value: i for i, value in enumerate(distinct)}
        values.append(distinct)
        columns.append([rank[v] if v is not None else ABSENT for v in given])
    return Levels(names, tuple(values), np.array(columns).T.reshape(len(configs), len(names)))


def features_of(levels: Levels, known: Mapping[str, np.ndarray] = MappingProxyType({})) -> Features:
    """Returns the columns of a GPU kernel's parameters, and the ``known`` columns, each float [n_configs].

    - a number: its logarithm, since ratios of sizes matter (its rank if one of its values is zero or less);
    - a number of several values that are not all powers of two: also how often two divides it, since 96 and 128 fill
      warps, banks and vectors alike, and 97 does not;
    - any other type: one column for each value, in one group;
    - a parameter that some configs lack: whether it is present; where it is absent, its own columns are 1/2;
    - two numbers of several values each: the logarithm of their product, since threads, tiles and bytes are products.

    A column that equals another one up to an affine map is left out.
    """
    columns: list[np.ndarray] = []
    groups: list[int] = []
    names: list[str] = []
    factors: list[tuple[str, np.ndarray]] = []
    directions: list[np.ndarray] = []  # unit vectors of the columns

    def add(name: str, *group: np.ndarray) -> None:
        own = [_direction(column) for column in group]
        if len(group) == 1 and columns and (not own[0].any() or np.abs(np.array(directions) @ own[0]).max() >= SAME):
            return
        columns.extend(group)
        directions.extend(own)
        groups.extend([len(names)] * len(group))
        names.append(name)

    for j, name in enumerate(levels.names):
        values, level = levels.values[j], levels.table[:, j]
        is_present = level != ABSENT
        if not is_present.all():
            add(f"{name}?", is_present.astype(float))
        if len(values) < 2:
            continue
        if not all(is_number(v) for v in values):
            add(name, *((level == v) / np.sqrt(2.0) for v in range(len(values))))
            continue
        size = log_or_rank(values)
        add(name, _spread(size, level))
        if len(values) > 2:
            add(f"2^ in {name}", _spread(powers_of_two(values), level))
            if min(float(v) for v in values) > 0:
                factors.append((name, np.where(is_present, size[level], 0.0)))
    for (a, log_a), (b, log_b) in combinations(factors, 2):
        add(f"{a} * {b}", _unit(log_a + log_b))
    for name, column in known.items():
        add(name, _unit(column))
    table = np.array(columns).T if columns else np.zeros((len(levels.table), 1))
    return Features(np.ascontiguousarray(table), np.array(groups or [0]), tuple(names) or ("",))


def _spread(of_level: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Maps ``of_level`` to [0, 1], float [n_configs]; 1/2 where the parameter is absent."""
    return np.asarray(np.where(level == ABSENT, 0.5, _unit(of_level)[level]))


def _unit(numbers: np.ndarray) -> np.ndarray:
    """Maps values to [0, 1]."""
    return np.asarray((numbers - numbers.min()) / max(np.ptp(numbers), 1e-12))


def log_or_rank(values: Sequence[Value]) -> np.ndarray:
    """Returns log2 of numbers; log2(1 + number) if one is zero; their ranks if one is negative."""
    numbers = np.array([float(v) for v in values])
    if numbers.min() < 0:
        return np.arange(len(numbers), dtype=float)
    return np.asarray(np.log2(numbers if numbers.min() > 0 else 1.0 + numbers))


def powers_of_two(values: Sequence[Value]) -> np.ndarray:
    """Returns how often two divides each value; 0 for zero and for non-integers."""
    whole = [int(v) if float(v).is_integer() else 1 for v in values]
    return np.array([(v & -v).bit_length() - 1 if v > 0 else 0 for v in whole], float)


def _direction(column: np.ndarray) -> np.ndarray:
    """Returns a column without its mean, scaled to length 1; 0 for a constant column."""
    centred = column - column.mean()
    return np.asarray(centred / max(float(np.sqrt(centred @ centred)), 1e-12))


def _natural(value: object) -> tuple[int, object]:
    return (0, value) if isinstance(value, (int, float)) else (1, str(value))
