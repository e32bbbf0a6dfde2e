"""Finds all that the header of a recording lacks: what it needs to be opened, and what outputs need besides."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..streams.samples import SampleInfo
from .opening import open_joined
from .reading import HeaderOverrides, LackingError, untold


def lacking_in(path: Path, given: Mapping[str, Any]) -> tuple[SampleInfo, list[LackingError]]:
    """Returns what a recording says when all that it lacks is given by examples, and what that is.

    Args:
        given: fields of ``HeaderOverrides`` that are known.

    Raises:
        UsageError: when it cannot be opened even so.
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
        return source.info, found


def not_said(info: SampleInfo, needs: Collection[str]) -> list[str]:
    """Returns which of the fields that an output needs the samples of an antenna do not say."""
    return [name for name in needs if getattr(info, name) in (None, "")]
