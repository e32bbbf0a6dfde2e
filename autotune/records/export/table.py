"""One row a trial: CSV as text, Parquet with lists as lists and whole numbers as whole numbers."""

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError
from ...system.installation import install_with
from ..folder import load

if TYPE_CHECKING:
    import pandas as pd


def csv(path: Path) -> str:
    """Every trial at or under ``path``; lists are written as Python prints tuples."""
    return load(path).to_csv(index=False)


def parquet(path: Path) -> bytes:
    """Every trial at or under ``path``, as the content of a Parquet file.

    Raises:
        UsageError: without pyarrow, or when there is no recorded sweep.
    """
    try:
        import_module("pyarrow")
    except ImportError as error:
        raise UsageError(
            "--format parquet needs pyarrow, which is not installed: pip install pyarrow, or "
            f"{install_with('parquet')}; --format csv needs nothing more"
        ) from error
    return bytes(uniform(load(path)).to_parquet(engine="pyarrow", index=False))


def uniform(table: "pd.DataFrame") -> "pd.DataFrame":
    """``table`` with one type a column, as a typed format wants it.

    Tuples become lists. A column whose values are of several types (a parameter that is a number in one kernel and a
    word in another) becomes text, and so do mappings, as JSON.
    """
    changed = {str(name): _uniform(list(table[name])) for name in table if table[name].dtype == object}
    return table.assign(**changed)


def _uniform(values: list[Any]) -> list[Any]:
    present = [value for value in values if value is not None]
    kinds = {list if isinstance(value, (list, tuple)) else type(value) for value in present}
    if kinds == {list}:
        return [None if value is None else list(value) for value in values]
    if kinds == {dict}:
        return [None if value is None else json.dumps(value) for value in values]
    return values if len(kinds) <= 1 else [None if value is None else str(value) for value in values]
