"""The parameters of many trials as arrays: the values of each, and which of them each trial has."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.config import Value, columns_of
from ..records.trial import Trial


@dataclass(frozen=True)
class Coded:
    """One parameter. ``codes``: int64 [n_trials], the place of each trial's value in ``values``; -1: it has none."""

    values: tuple[Value, ...]
    codes: np.ndarray


def coded(trials: Sequence[Trial]) -> dict[str, Coded]:
    """Returns each parameter of these trials; its values are in the order of their first trials."""
    found = {}
    for name, column in columns_of([trial.config for trial in trials]).items():
        places: dict[Value | None, int] = {
            value: i for i, value in enumerate(v for v in dict.fromkeys(column) if v is not None)
        }
        values = tuple(value for value in places if value is not None)
        places[None] = -1
        found[name] = Coded(values, np.array([places[value] for value in column], np.int64))
    return found
