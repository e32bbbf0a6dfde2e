"""Finds all that the header of a recording lacks: what it needs to be opened, and what outputs need besides."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..streams.samples import SampleInfo
from .opening import open_joined
from .reading import HeaderOverrides, LackingError, untold

SERIES = re.compile(r"_\d{16}\.(\d{6})\.dada")  # names of files as PSRDADA writes them: OBS_OFFSET and FILE_NUMBER


@dataclass(frozen=True)
class Look:
    """A file as it is when all that its header lacks is given by examples."""

    path: Path
    info: SampleInfo
    lacking: Sequence[LackingError]
    overlap: int  # samples by which a next piece may begin before its end
    number: int | None  # its place in a series of files, where header or name say it


def look_at(path: Path, given: Mapping[str, Any]) -> Look:
    """Returns what a recording says, and what it lacks.

    Args:
        given: fields of ``HeaderOverrides`` that are known.

    Raises:
        UsageError: when it cannot be opened even if all that lacks is given.
    """
    found: list[LackingError] = []
    while True:
        try:
            source = open_joined([path], HeaderOverrides(**given), untold)
        except LackingError as error:
            if error.field in (each.field for each in found):
                raise
            found.append(error)
            given = {**given, error.field: error.example}
            continue
        source.close()
        named = SERIES.search(path.name)
        number = getattr(source, "number", None)
        number = int(named[1]) if number is None and named is not None else number
        return Look(path, source.info, found, getattr(source, "overlap", 0), number)


def not_said(info: SampleInfo, needs: Collection[str]) -> list[str]:
    """Returns which of the fields that an output needs the samples of an antenna do not say."""
    return [name for name in needs if getattr(info, name) in (None, "")]
