"""A configuration as data, and its values as text."""

import gc
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import isfinite
from typing import Any

from .html import html_table
from .schema import Check, as_name, as_scalar, mapping_of

Value = int | float | str | bool
QUOTE = '"'
PART = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,])+')  # one element of a list that commas separate


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


def config_value_text(value: Value) -> str:
    """Returns a value as configs write it: as it prints, or as a JSON string where that would not read back."""
    text = str(value)
    return text if reads_back(text) and not text.startswith(QUOTE) else json.dumps(text)


def unquoted(text: str) -> str:
    """Returns the text that ``config_value_text`` has quoted; other texts stay unchanged."""
    if len(text) > 1 and text.startswith(QUOTE) and text.endswith(QUOTE):
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text


def listed_parts(text: str) -> list[str]:
    """Returns the elements of a list; commas inside quotes do not separate."""
    return [part.strip() for part in PART.findall(text) if part.strip()]


class Config(Mapping[str, Value]):
    """A value for each parameter, immutable and ordered: ``config.WGS``, ``config["WGS"]``, ``str(config)``.

    Configs of the same parameters share their names, so a million configs of ten parameters take 200 MB.

    Raises:
        AttributeError: for an unknown parameter.
    """

    __slots__ = ("_numbers", "_values")
    _numbers: Mapping[str, int]  # parameter -> its place among the values
    _values: tuple[Value, ...]

    def __init__(self, values: Mapping[str, Value] | None = None, /, **more: Value) -> None:
        given = {**(values or {}), **more}
        object.__setattr__(self, "_numbers", _numbers_of(tuple(given)))
        object.__setattr__(self, "_values", tuple(given.values()))

    def __getitem__(self, name: str) -> Value:
        return self._values[self._numbers[name]]

    def __getattr__(self, name: str) -> Any:
        numbers = object.__getattribute__(self, "_numbers")
        if name in numbers:
            return self._values[numbers[name]]
        raise AttributeError(f"{name!r} is not a parameter of this configuration (has {', '.join(numbers)})")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is immutable: {name} cannot be set")

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(zip(self._numbers, self._values, strict=True)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Config) and self._numbers is other._numbers:
            return self._values == other._values
        return isinstance(other, Mapping) and dict(self) == dict(other)

    def __str__(self) -> str:
        return ",".join(f"{name}={config_value_text(value)}" for name, value in self.items())

    def __repr__(self) -> str:
        return f"Config({self})"

    def _repr_html_(self) -> str:
        return html_table("", dict(self))

    def __reduce__(self) -> tuple[object, ...]:
        return (Config, (dict(self),))


_members: Check = mapping_of(as_name, as_scalar)


def as_config(value: object) -> Config:
    """Checks for a configuration in JSON."""
    return Config(_members(value))


@lru_cache(maxsize=4096)
def _numbers_of(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(names)}


@contextmanager
def without_collection() -> Iterator[None]:
    """Stops Python's search for unused cycles meanwhile: it would visit millions of new values again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def configs_of(names: Sequence[str], rows: Iterable[tuple[Value, ...]]) -> tuple[Config, ...]:
    """Returns a Config for each row of values; the values are in the order of ``names``."""
    numbers, make = _numbers_of(tuple(names)), Config.__new__
    set_numbers, set_values = Config.__dict__["_numbers"].__set__, Config.__dict__["_values"].__set__

    def made(row: tuple[Value, ...]) -> Config:
        config = make(Config)
        set_numbers(config, numbers)
        set_values(config, row)
        return config

    return tuple(map(made, rows))


def columns_of(configs: Sequence[Config]) -> dict[str, Sequence[Value | None]]:
    """Returns parameter -> its value in each config, None where a config lacks it; names are in ``merged_order``."""
    if len({id(config._numbers) for config in configs}) == 1:  # configs of the same parameters share their names
        return dict(zip(configs[0], zip(*[config._values for config in configs], strict=True), strict=True))
    places: dict[int, list[int]] = {}
    for place, config in enumerate(configs):
        places.setdefault(id(config._numbers), []).append(place)
    columns: dict[str, list[Value | None]] = {
        name: [None] * len(configs) for name in merged_order(configs[own[0]] for own in places.values())
    }
    for own in places.values():
        values = zip(*(configs[place]._values for place in own), strict=True)
        for name, column in zip(configs[own[0]], values, strict=True):
            for place, value in zip(own, column, strict=True):
                columns[name][place] = value
    return dict(columns)


def merged_order(configs: Iterable[Config]) -> list[str]:
    """Returns parameter names in an order that agrees with each config's own.

    A parameter that some configs lack comes right after the one that it follows in the others.
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
