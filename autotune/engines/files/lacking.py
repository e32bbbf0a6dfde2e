"""Finds the fields that the header of a recording lacks: those that opening it needs, and those that outputs need."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..streams.samples import SampleInfo
from .header_fields import overrides_of
from .opening import open_joined
from .reading import LackingError, untold

SERIES = re.compile(r"_\d{16}\.(\d{6})\.dada")  # the end of PSRDADA's file names: OBS_OFFSET and FILE_NUMBER


@dataclass(frozen=True)
class Look:
    """A file, opened with an example for each field that its header lacks."""

    path: Path
    info: SampleInfo
    lacking: Sequence[LackingError]
    overlap: int  # samples by which the next piece may begin before this one's end
    number: int | None  # its place in a series of files, from its header or name


def look_at(path: Path, overrides: Mapping[str, Any]) -> Look:
    """Returns the header of a recording, and the fields that it lacks.

    Args:
        overrides: fields of the header that are given.

    Raises:
        UsageError: when it cannot be opened even with all missing fields given.
    """
    errors: list[LackingError] = []
    while True:
        try:
            source = open_joined([path], overrides_of(overrides), untold)
        except LackingError as error:
            if error.field in (each.field for each in errors):
                raise
            errors.append(error)
            overrides = {**overrides, error.field: error.example}
            continue
        source.close()
        named = SERIES.search(path.name)
        number = getattr(source, "number", None)
        number = int(named[1]) if number is None and named is not None else number
        return Look(path, source.info, errors, getattr(source, "overlap", 0), number)


def not_said(info: SampleInfo, needs: Collection[str]) -> list[str]:
    """Returns the names in ``needs`` whose fields in an antenna's header are empty."""
    return [name for name in needs if getattr(info, name) in (None, "")]
