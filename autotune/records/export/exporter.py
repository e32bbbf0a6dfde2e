"""The interface that the module of an export format implements."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..record import SweepRecord

Contents = Mapping[str, bytes]  # end of a file's name, such as "-results.json" -> content of the file


class ExportFormat(Protocol):
    """The attributes of a module in ``autotune.records.export``, or in an installed package."""

    is_table: bool  # one file holds all sweeps; otherwise each sweep has files of its own
    is_text: bool  # a single file may go to stdout

    def contents(self, sweeps: Sequence[SweepRecord]) -> Contents:
        """Returns the files for ``sweeps``: for all sweeps if the format is a table, otherwise for the only one.

        Raises:
            UsageError: when the format cannot represent them; the message says what to do.
        """
