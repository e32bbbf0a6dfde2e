"""Exports CSV: one row per trial."""

from collections.abc import Sequence

from ..record import SweepRecord
from ..table import trials_table
from .exporter import Contents

is_table, is_text = True, True


def contents(sweeps: Sequence[SweepRecord]) -> Contents:
    """Returns a CSV file of all trials; lists are written as Python prints tuples."""
    return {
        ".csv": trials_table(sweep.folder for sweep in sweeps).to_csv(index=False).encode(errors="backslashreplace")
    }
