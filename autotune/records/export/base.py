"""The interface of an export format: what a module for one offers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..record import SweepRecord

Contents = Mapping[str, bytes]  # the end of a file's name, such as "-results.json", -> what is in that file


class Format(Protocol):
    """What a module of ``autotune.records.export`` offers, or one of an installed package."""

    is_table: bool  # one file holds all sweeps; otherwise each sweep has files of its own
    is_text: bool  # a single file may go to stdout

    def contents(self, sweeps: Sequence[SweepRecord]) -> Contents:
        """The files of ``sweeps``: of all where the format is a table, otherwise of the one that is given.

        Raises:
            UsageError: when they cannot be written so; says what to do.
        """
