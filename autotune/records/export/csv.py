"""CSV: one row a trial, in text."""

from collections.abc import Sequence

from ..record import SweepRecord
from ..table import trials_table
from .exporter import Contents

is_table, is_text = True, True


def contents(sweeps: Sequence[SweepRecord]) -> Contents:
    """Every trial; lists are written as Python prints tuples."""
    return {
        ".csv": trials_table(sweep.folder for sweep in sweeps).to_csv(index=False).encode(errors="backslashreplace")
    }
