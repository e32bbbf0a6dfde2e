"""The interface of an export format: what a module for one offers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..record import SweepRecord

Contents = Mapping[str, bytes]  # the end of a file's name, such as "-results.json", -> what is in that file


class ExportFormat(Protocol):
    """The attributes of a module in ``autotune.records.export``, or of an installed package's."""

    is_table: bool  # one file holds all sweeps; otherwise each sweep has files of its own
    is_text: bool  # a single file may go to stdout

    def contents(self, sweeps: Sequence[SweepRecord]) -> Contents:
        """Returns the files for ``sweeps``: those of all where the format is a table, otherwise those of the only one.

        Raises:
            UsageError: when they cannot be written so; says what to do.
        """
