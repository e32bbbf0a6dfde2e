"""Turns configs into numbers: levels, which compare values, and columns, which measure distances between configs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

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


@dataclass(frozen=True)
class Features:
    """Coordinates of configs; their weighted distances measure how similar two configs are.

    ``columns[i, k]``: coordinate k of config i, in [0, 1], float [n_configs, n_columns]. Columns with the same
    ``groups[k]`` share a length scale. ``names``: the name of each group, for people.
    """

    columns: np.ndarray
    groups: np.ndarray  # int [n_columns]
    names: tuple[str, ...]


def levels_of(configs: Sequence[Config]) -> Levels:
    """Returns levels: numbers are in ascending order, other values in the order of their text."""
    values, columns = dict[str, tuple[Value, ...]](), []
    for name in dict.fromkeys(name for config in configs for name in config):
        given = [config.get(name) for config in configs]
        values[name] = tuple(sorted({v for v in given if v is not None}, key=lambda v: (isinstance(v, str), v)))
        rank = {value: i for i, value in enumerate(values[name])}
        columns.append([ABSENT if v is None else rank[v] for v in given])
    return Levels(tuple(values), tuple(values.values()), np.array(columns).T.reshape(len(configs), len(values)))


def features_of(levels: Levels, known: Mapping[str, np.ndarray] = {}) -> Features:
    """Returns the columns of a GPU kernel's parameters, and the ``known`` columns, each float [n_configs].

    - a number: its logarithm, since ratios of sizes matter (of 1 + number if one is zero; its rank if one is negative);
    - a number of several values that are not all powers of two: also how often two divides it, since 96 and 128 fill
      warps, banks and vectors alike, and 97 does not;
    - any other type: one column for each value, in one group;
    - a parameter that some configs lack: whether it is present; where it is absent, its own columns are 1/2;
    - two numbers of several values each: the logarithm of their product, since threads, tiles and bytes are products.

    A column that equals another one up to an affine map is left out.
    """
    columns, directions, groups, names = list[np.ndarray](), list[np.ndarray](), list[int](), list[str]()
    for name, group in _groups(levels, known):
        own = [_direction(column) for column in group]
        if len(group) == 1 and columns and (not own[0].any() or np.abs(np.array(directions) @ own[0]).max() >= SAME):
            continue
        columns += group
        directions += own
        groups += [len(names)] * len(group)
        names.append(name)
    table = np.array(columns).T if columns else np.zeros((len(levels.table), 1))
    return Features(np.ascontiguousarray(table), np.array(groups or [0]), tuple(names) or ("",))


def _groups(levels: Levels, known: Mapping[str, np.ndarray]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yields the name and the columns of each group, also of those that say nothing new."""
    factors: list[tuple[str, np.ndarray]] = []
    for name, values, level in zip(levels.names, levels.values, levels.table.T, strict=True):
        is_present = level != ABSENT
        if not is_present.all():
            yield f"{name}?", [is_present.astype(float)]
        if len(values) < 2:
            continue
        if not all(is_number(v) for v in values):
            yield name, [(level == v) / np.sqrt(2.0) for v in range(len(values))]
            continue
        numbers = np.array([float(v) for v in values])
        size = np.arange(len(values), dtype=float) if numbers.min() < 0 else np.log2(numbers + (numbers.min() == 0))
        yield name, [np.where(is_present, _unit(size)[level], 0.5)]
        if len(values) > 2:
            whole = [int(number) if number > 0 and number.is_integer() else 1 for number in numbers]
            twos = np.array([(number & -number).bit_length() - 1.0 for number in whole])
            yield f"2^ in {name}", [np.where(is_present, _unit(twos)[level], 0.5)]
            if numbers.min() > 0:
                factors.append((name, np.where(is_present, size[level], 0.0)))
    for (a, log_a), (b, log_b) in combinations(factors, 2):
        yield f"{a} * {b}", [_unit(log_a + log_b)]
    for name, column in known.items():
        yield name, [_unit(column)]


def _unit(numbers: np.ndarray) -> np.ndarray:
    return np.asarray((numbers - numbers.min()) / max(np.ptp(numbers), 1e-12))


def _direction(column: np.ndarray) -> np.ndarray:
    """Returns a column without its mean, scaled to length 1; 0 for a constant column."""
    centred = column - column.mean()
    return np.asarray(centred / max(float(np.sqrt(centred @ centred)), 1e-12))
