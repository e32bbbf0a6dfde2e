"""Recorded trials as a table: one row for each trial of any number of sweeps."""

import os
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.schema import MOST_WHOLE
from ..system.limits import check_type
from .figure import defaults_of, figures_of
from .folder import SweepFolder, find_sweeps
from .trial import Trial

if TYPE_CHECKING:
    import pandas as pd

OWN = tuple(name for name in figures_of(Trial) if name not in ("config", "metrics", "samples_s"))
DEFAULTS = defaults_of(Trial)


def load_trials(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Returns every recorded trial at or under ``path``, one row each.

    Columns: device, kernel, the problem's fields as ``problem.<field>``, the parameters by their own names, Trial's
    fields (seconds, bytes, GB/s, TFLOP/s, joules), ``metric.<name>``, and unknown fields of later versions, unchanged.
    A value that a trial lacks is missing (NA).

    Raises:
        UsageError: when there is no recorded sweep.
    """
    check_type("path", path, (str, os.PathLike), "a path")
    return trials_table(find_sweeps(Path(path)))


def trials_table(folders: "Iterable[SweepFolder]") -> "pd.DataFrame":
    """Returns the table of ``load_trials`` for these sweeps."""
    import pandas as pd  # here: workers and compile processes start without it

    columns: dict[str, list[object]] = {}
    n = 0

    def extend(name: str, values: Sequence[object]) -> None:
        column = columns.setdefault(name, [])
        column.extend(repeat(None, n - len(column)))
        column.extend(values)

    for folder in folders:
        about, table = folder.about(), folder.columns()
        n_own = table.n
        fixed: dict[str, object] = {"device": about.device.name, "kernel": about.kernel}
        fixed |= {f"problem.{name}": value for name, value in about.problem.items()}
        for name, value in fixed.items():
            extend(name, [value] * n_own)
        for name, values in table.parameters.items():
            extend(name, values)
        for name in OWN:
            extend(name, table.figures.get(name) or [DEFAULTS.get(name)] * n_own)
        metrics = table.figures.get("metrics", ())
        for name in dict.fromkeys(name for own in metrics for name in own):
            extend(f"metric.{name}", [own.get(name) for own in metrics])
        for name, values in table.others.items():
            if len(columns.get(name, ())) <= n:
                extend(name, values)
        n += n_own
    for column in columns.values():
        column.extend(repeat(None, n - len(column)))
    return pd.DataFrame({name: _column(columns.pop(name)) for name in list(columns)})


def _column(values: Sequence[object]) -> "pd.Series[Any]":
    """Returns a column whose integers stay integers even if some are missing."""
    import pandas as pd

    kinds = set(map(type, values)) - {type(None)}
    if kinds == {int} and any(isinstance(value, int) and abs(value) >= MOST_WHOLE for value in values):
        return pd.Series(values, dtype=float)
    return pd.Series(values, dtype="Int64" if kinds == {int} else None)
