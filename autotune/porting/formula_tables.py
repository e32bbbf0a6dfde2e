"""What only Python functions of a call can say, of all its configs: columns of their values, and the sources."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import UsageError
from .formulas import Formulas

N_CHECKED = 1000  # configs of which all is computed that the call says


@dataclass(frozen=True)
class FormulaTable:
    """A row for each config.

    ``config``: of each parameter that has several values their numbers. ``said``: of each function its values, each
    once, and which of them each row has. ``sources``: the texts of the configs, where each has its own.
    """

    config: dict[str, list[int]]
    said: dict[str, dict[str, list[Any]]]
    sources: tuple[str, ...] = field(default=(), repr=False)


def table_of(formulas: Formulas) -> FormulaTable | None:
    """Returns what functions say of each config; None where texts say everything.

    Raises:
        UsageError: when there are too many configs to ask about each, or a function cannot be asked.
    """
    call = formulas.call
    if not formulas.functions and call.generate is None and call.is_written:
        return None
    found = call.enumeration
    if found.told_sample:
        raise UsageError(
            f"{found.told_sample}: too many to ask a function about each; give sizes and restrictions as text"
        )
    for config in found.configs[:: 1 + len(found.configs) // N_CHECKED]:
        formulas.said(config)  # tells what cannot be computed there
    numbers = {
        name: {value: number for number, value in enumerate(values)}
        for name, values in call.space.items()
        if len(values) > 1
    }
    columns = {name: [of[config[name]] for config in found.configs] for name, of in numbers.items()}
    said = {place: _coded(formulas.said_by(place, config) for config in found.configs) for place in formulas.functions}
    if call.generate is None:
        return FormulaTable(columns, said)
    sources = _coded(call.generated(config) for config in found.configs)
    if len(sources["values"]) == 1:
        return FormulaTable(columns, said)
    return FormulaTable(columns, said | {"source": {"of": sources["of"]}}, tuple(sources["values"]))


def _coded(values: Iterable[Hashable]) -> dict[str, list[Any]]:
    """Returns the values, each once, and the number of each."""
    numbers: dict[Hashable, int] = {}
    of = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"values": [getattr(value, "item", lambda value=value: value)() for value in numbers], "of": of}
