"""The header fields that callers may give: those of every recording, and those that a format declares for its files."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...core import schema
from ...core.errors import UsageError
from . import formats
from .formats.interface import SAMPLES
from .reading import FIELDS, HeaderField, HeaderOverrides


@cache
def header_fields() -> Mapping[str, HeaderField]:
    """Returns all fields by name. A field that several formats declare is that of the first.

    A format of an installed package that cannot be loaded has none here; who names it gets the error.
    """
    found = dict(FIELDS)
    for each in [*formats.that_hold(SAMPLES), *formats.added(SAMPLES)]:
        for name, field in getattr(each, "header_fields", {}).items():
            found.setdefault(name, field)
    return found


def overrides_of(header: Mapping[str, Any]) -> HeaderOverrides:
    """Returns the fields of ``header`` that are not None.

    Raises:
        UsageError: for an unknown field, with the nearest known one, or a wrong value.
    """
    known, given = header_fields(), {name: value for name, value in header.items() if value is not None}
    for name in sorted(given.keys() - known.keys()):
        near = schema.suggestion(name, list(known))
        raise UsageError(f"unknown header field {name!r}{near}; known fields: {', '.join(known)}")
    for name, value in given.items():
        try:
            known[name].check(list(value) if isinstance(value, tuple) else value)
        except schema.Unsound as error:
            raise UsageError(f"{name} {error}") from None
    return HeaderOverrides({name: tuple(each) if isinstance(each, list) else each for name, each in given.items()})


def parsed_header(texts: Sequence[str]) -> dict[str, object]:
    """Returns the fields in texts such as ``sample_rate_hz=64e6``.

    Raises:
        UsageError: for another form, an unknown field or a wrong value.
    """
    header: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            if not equals:
                raise ValueError
            header[name] = header_fields()[name].parse(value) if name in header_fields() else value
        except ValueError:
            raise UsageError(f"--header {text}: must be NAME=VALUE, as sample_rate_hz=64e6") from None
    overrides_of(header)
    return header
