"""Tables of values that only the caller's Python functions can compute: one row per config, and the sources."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import UsageError
from .formulas import Formulas

N_CHECKED = 1000  # configs at which every formula of the call is evaluated, to find errors early


@dataclass(frozen=True)
class FormulaTable:
    """A table with one row per config.

    ``config``: column of value numbers for each parameter with several values. ``said``: for each function its
    distinct values, and for each row the number of its value. ``sources``: distinct source texts, if they differ.
    """

    config: dict[str, list[int]]
    said: dict[str, dict[str, list[Any]]]
    sources: tuple[str, ...] = field(default=(), repr=False)


def table_of(formulas: Formulas) -> FormulaTable | None:
    """Returns the functions' values at all configs; None if the call is expressed in texts alone.

    Raises:
        UsageError: if there are too many configs to call a function for each, or a function raises.
    """
    call = formulas.call
    if not formulas.functions and call.generate is None and call.is_written:
        return None
    enumeration = call.enumeration
    if enumeration.told_sample:
        raise UsageError(
            f"{enumeration.told_sample}: too many to call a function for each; give sizes and restrictions as text"
        )
    for config in enumeration.configs[:: 1 + len(enumeration.configs) // N_CHECKED]:
        formulas.said(config)  # raises if something cannot be computed there
    numbers = {
        name: {value: number for number, value in enumerate(values)}
        for name, values in call.space.items()
        if len(values) > 1
    }
    columns = {name: [of[config[name]] for config in enumeration.configs] for name, of in numbers.items()}
    places = {
        place: _coded(formulas.said_by(place, config) for config in enumeration.configs) for place in formulas.functions
    }
    if call.generate is None:
        return FormulaTable(columns, places)
    sources = _coded(call.generated(config) for config in enumeration.configs)
    if len(sources["values"]) == 1:
        return FormulaTable(columns, places)
    return FormulaTable(columns, places | {"source": {"of": sources["of"]}}, tuple(sources["values"]))


def _coded(values: Iterable[Hashable]) -> dict[str, list[Any]]:
    """Returns the distinct values, and for each position the number of its value."""
    numbers: dict[Hashable, int] = {}
    of = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"values": [getattr(value, "item", lambda value=value: value)() for value in numbers], "of": of}
