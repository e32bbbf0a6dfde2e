"""Turns a space into a grid of choices, and a sampler's point of the grid into the nearest config of the list."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.config import Config, Value
from .features import ABSENT, levels_of

NOTHING = "-"  # the choice for a parameter that a config lacks


@dataclass(frozen=True)
class ParameterGrid:
    """The parameters of a space, each with its choices; ``table[i, j]`` is the choice of config i for ``names[j]``.

    Choices are in ascending order; NOTHING comes last if some config lacks the parameter.
    """

    names: tuple[str, ...]
    choices: tuple[tuple[Value, ...], ...]
    table: np.ndarray  # int [n_configs, n_names]
    last: np.ndarray  # int [n_names], number of the last choice, at least 1; differences are divided by it

    @staticmethod
    def of(configs: Sequence[Config]) -> "ParameterGrid":
        """Returns the grid of these configs."""
        levels = levels_of(configs)
        choices = tuple(
            values + (NOTHING,) * bool((column == ABSENT).any())
            for values, column in zip(levels.values, levels.table.T, strict=True)
        )
        last = np.array([max(1, len(each) - 1) for each in choices])
        return ParameterGrid(levels.names, choices, np.where(levels.table == ABSENT, last, levels.table), last)

    def nearest(self, rows: np.ndarray, wanted: Sequence[int]) -> int:
        """Returns the one of ``rows`` that differs from ``wanted`` in the fewest parameters; among equals, by least.

        ``wanted``: the number of a choice for each parameter. ``rows``: int [n_rows], numbers of configs.
        """
        off = np.abs(self.table[rows] - np.array(wanted))
        nearest = np.lexsort(((off / self.last).sum(axis=1), (off > 0).sum(axis=1)))[0]
        return int(rows[nearest])
