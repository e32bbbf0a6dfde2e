"""Declares what a field of a record holds, once: all that reads, checks, writes or explains it follows from there."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from ..core.schema import Check


@dataclass(frozen=True)
class Figure:
    """What a field holds; it stands in the field's type, as in ``registers: Annotated[int | None, Figure(...)]``.

    Args:
        check: takes the value from JSON and returns it as it is used, or raises Unsound.
        meaning: one phrase for people. Neighbours with the same meaning share a row in docs/results.md.
        unit: "" where it has none.
        noun: what `show` and the report call its value where they state what the winner takes: "72 registers".
        in_verdict: whether verdict.json has it for each config of a final round.
        in_exports: whether the formats t4 and kernel-tuner have it beside the times.
        in_metrics: whether a metric may call it by its name; it is a number then.
    """

    check: Check
    meaning: str
    unit: str = ""
    noun: str = ""
    in_verdict: bool = False
    in_exports: bool = False
    in_metrics: bool = False


@cache
def figures_of(record: type[Any]) -> Mapping[str, Figure]:
    """Returns the figures of a dataclass by the names of their fields, in the order of their declaration."""
    hints = get_type_hints(record, include_extras=True)
    found = {
        field.name: figure
        for field in fields(record)
        for figure in get_args(hints[field.name])[1:]
        if isinstance(figure, Figure)
    }
    return MappingProxyType(found)
