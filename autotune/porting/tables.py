"""What only Python functions of a call can say: for each config its launch, its macros and its source."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .call import AXES, UNROLL, Call


@dataclass(frozen=True)
class Row:
    """A config that functions allow, and what they say of it."""

    config: tuple[Any, ...]
    grid: tuple[int, int, int]
    shared_bytes: int
    defines: str  # lines before the source
    source: int = 0  # number of its text, if each config has its own


@dataclass(frozen=True)
class Table:
    """All rows, and the texts that they name; no text where all have the same."""

    rows: tuple[Row, ...]
    sources: tuple[str, ...] = field(default=(), repr=False)


def table_of(call: Call) -> Table | None:
    """Returns what functions say of each config; None where texts say everything.

    Raises:
        UsageError: when there are too many configs to ask about each.
    """
    if not call.has_functions:
        return None
    numbers: dict[str, int] = {}
    rows = []
    for config in call.configs():
        text = call.source.text if call.generate is None else call.generated(config)
        number = numbers.setdefault(text, len(numbers))
        said = call.grid(config), call.shared(config), define_lines(call, config)
        rows.append(Row(tuple(config.values()), *said, number))
    return Table(tuple(rows), tuple(numbers) if len(numbers) > 1 else ())


def define_lines(call: Call, config: Mapping[str, Any]) -> str:
    """Returns the lines that stand before the source, as users of Kernel Tuner know them."""
    if call.defines is not None:
        given = {name: value(dict(config)) if callable(value) else value for name, value in call.defines.items()}
        said: dict[str, Any] = {name: _replaced(str(value), config) for name, value in given.items()}
    else:
        said = {f"grid_size_{axis}": n for axis, n in zip(AXES, call.grid(config), strict=True)}
        said |= dict(zip(call.block_names, call.block(config), strict=True))
        said |= {name: value for name, value in config.items() if not name.startswith(UNROLL)}
        said["kernel_tuner"] = 1
    said |= call.macros
    lines = [f"#define {name} {_plain(value)}" for name, value in said.items()]
    if call.defines is None:
        lines += [f"constexpr int {name} = {value};" for name, value in config.items() if name.startswith(UNROLL)]
    return "\n".join(lines) + "\n"


def _replaced(text: str, config: Mapping[str, Any]) -> str:
    return re.sub(r"\b\w+\b", lambda found: str(config.get(found[0], found[0])), text)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
