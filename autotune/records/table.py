"""Recorded trials as a table: one row for each trial of any number of sweeps."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..system.limits import check_type
from .figure import figures_of
from .folder import SweepFolder, find_sweeps
from .outcome import tell_missing
from .trial import Trial

if TYPE_CHECKING:
    import pandas as pd

OWN = tuple(name for name in figures_of(Trial) if name not in ("config", "metrics"))  # columns of every trial


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
    for folder in folders:
        about = folder.about()
        fixed: dict[str, object] = {"device": about.device.name, "kernel": about.kernel}
        fixed |= {f"problem.{name}": value for name, value in about.problem.items()}
        trials, outcome = folder.trials(), folder.outcome()
        if outcome is not None:
            tell_missing(folder.path, outcome, trials)
        for trial in trials:
            row = {**fixed, **trial.config, **{name: getattr(trial, name) for name in OWN}}
            row["status"] = str(trial.status)
            row |= {f"metric.{name}": value for name, value in trial.metrics.items()}
            row |= {name: value for name, value in trial.others.items() if name not in row}
            for name, value in row.items():
                column = columns.setdefault(name, [])
                column.extend([None] * (n - len(column)))
                column.append(value)
            n += 1
    for column in columns.values():
        column.extend([None] * (n - len(column)))
    return pd.DataFrame({name: _column(columns.pop(name)) for name in list(columns)})


def _column(values: Sequence[object]) -> "pd.Series[Any]":
    """Returns a column whose integers stay integers even if some are missing."""
    import pandas as pd

    kinds = {type(v) for v in values if v is not None}
    return pd.Series(values, dtype="Int64" if kinds == {int} else None)
