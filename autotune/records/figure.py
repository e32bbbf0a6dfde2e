"""Declares a field of a record in one place, from which its reading, checks, writing and explanation follow."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from ..core.schema import Check


@dataclass(frozen=True)
class Figure:
    """The declaration of a field, as part of its type: ``registers: Annotated[int | None, Figure(...)]``.

    Args:
        check: takes the value from JSON and returns it in the form that code uses, or raises Unsound.
        meaning: one phrase for people. Adjacent fields with the same meaning share a row in docs/results.md.
        unit: the unit, or "".
        noun: the noun after its value where `show` and the report state the winner's resources: "72 registers".
        in_verdict: whether verdict.json contains it for each config of a final round.
        in_exports: whether the formats t4 and kernel-tuner contain it beside the times.
        in_metrics: whether a metric may use it by its name; it must be a number.
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
    """Returns field name -> figure of a dataclass, in the order of declaration."""
    hints = get_type_hints(record, include_extras=True)
    figures = {
        field.name: figure
        for field in fields(record)
        for figure in get_args(hints[field.name])[1:]
        if isinstance(figure, Figure)
    }
    return MappingProxyType(figures)
