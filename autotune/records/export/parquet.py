"""Exports Parquet: one row per trial; lists stay lists, and whole numbers stay whole numbers."""

import json
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError
from ...system.installation import install_with
from ..record import SweepRecord
from ..table import trials_table
from .exporter import Contents

if TYPE_CHECKING:
    import pandas as pd


is_table, is_text = True, False


def contents(sweeps: Sequence[SweepRecord]) -> Contents:
    """Returns a Parquet file of all trials.

    Raises:
        UsageError: without pyarrow.
    """
    try:
        import_module("pyarrow")
    except ImportError as error:
        raise UsageError(
            "--format parquet needs pyarrow, which is not installed: pip install pyarrow, or "
            f"{install_with('parquet')}; --format csv needs nothing more"
        ) from error
    rows = trials_table(sweep.folder for sweep in sweeps)
    return {".parquet": bytes(uniform(rows).to_parquet(engine="pyarrow", index=False))}


def uniform(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Returns ``rows`` with one type per column, as a typed format needs.

    Tuples become lists. A column whose values are of several types (a parameter that is a number in one kernel and a
    word in another) becomes text, and so do mappings, as JSON.
    """
    changed = {str(name): _uniform(list(rows[name])) for name in rows if rows[name].dtype == object}
    return rows.assign(**changed)


def _uniform(values: list[Any]) -> list[Any]:
    present = [value for value in values if value is not None]
    kinds = {list if isinstance(value, (list, tuple)) else type(value) for value in present}
    if kinds == {list}:
        return [None if value is None else list(value) for value in values]
    if kinds == {dict}:
        return [None if value is None else json.dumps(value) for value in values]
    return values if len(kinds) <= 1 else [None if value is None else str(value) for value in values]
