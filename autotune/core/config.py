"""A configuration as data, and its values as text."""

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from .html import html_table

Value = int | float | str | bool


def reads_back(text: str) -> bool:
    """Returns whether ``name=text`` reads back from a comma-separated list, as configs and problems are written."""
    return bool(text) and text == text.strip() and text.isprintable() and not set(text) & set(",=")


def parse_value(text: str) -> Value:
    """Parses text as an int, a float, a bool or else a string; ``nan`` and ``inf`` are strings."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        return value if isfinite(value) else text
    return text


class Config(Mapping[str, Value]):
    """A value for each parameter, immutable and ordered: ``config.WGS``, ``config["WGS"]``, ``str(config)``.

    Raises:
        AttributeError: for a parameter that this configuration does not have.
    """

    __slots__ = ("_values",)
    _values: dict[str, Value]

    def __init__(self, values: Mapping[str, Value] | None = None, **more: Value) -> None:
        object.__setattr__(self, "_values", {**(values or {}), **more})

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        values = object.__getattribute__(self, "_values")
        if name in values:
            return values[name]
        raise AttributeError(f"{name!r} is not a parameter of this configuration (has {', '.join(values)})")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is immutable: {name} cannot be set")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Config):
            return self._values == other._values
        return isinstance(other, Mapping) and self._values == dict(other)

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self._values.items())

    def __repr__(self) -> str:
        return f"Config({self})"

    def _repr_html_(self) -> str:
        """Returns what notebooks show."""
        return html_table("", self._values)

    def __reduce__(self) -> tuple[object, ...]:
        return (Config, (self._values,))


def merged_order(configs: Iterable[Config]) -> list[str]:
    """Returns parameter names in an order that agrees with each config's own.

    A parameter that some configs lack goes right after the one it follows where it is present.
    """
    order: list[str] = []
    for names in dict.fromkeys(tuple(config) for config in configs):
        place = 0
        for name in names:
            if name in order:
                place = order.index(name) + 1
            else:
                order.insert(place, name)
                place += 1
    return order
