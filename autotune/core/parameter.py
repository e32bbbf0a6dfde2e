"""The parts of a tuning space: parameters, and constraints between them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .config import Config, Value
from .device import Device
from .errors import error_text

UNJUDGED = "cannot be judged:"  # begins the reason where a predicate raised
Predicate = Callable[[Any, Config, Device], bool]


@dataclass(frozen=True)
class Parameter:
    """One axis: its values in their natural order, and the condition under which it exists.

    ``since``: the value that applies to configs older than the parameter; None if there are no such configs.
    """

    name: str
    values: tuple[Value, ...]
    condition: tuple[tuple[str, tuple[Value | None, ...]], ...] = ()
    since: Value | None = None

    def applies(self, config: Mapping[str, Value]) -> bool:
        return all(config.get(other) in allowed for other, allowed in self.condition)


def completed_config(config: Mapping[str, Value], added: Iterable[Parameter]) -> Config:
    """Returns ``config`` with the values of parameters that were ``added`` to its space after it was recorded."""
    values = dict(config)
    for parameter in added:
        if parameter.since is not None and parameter.name not in values and parameter.applies(values):
            values[parameter.name] = parameter.since
    return Config(values)


@dataclass(frozen=True)
class Constraint:
    """A named predicate; ``reason`` is true of every config that it allows. Configs that a heuristic refuses can run.

    ``reads``: the parameters that the predicate depends on; None: calls find out. ``text``: the predicate as an
    expression from ``checked_expression``; "" if it is a function.
    """

    name: str
    reason: str
    holds: Predicate
    is_heuristic: bool = False
    reads: tuple[str, ...] | None = None
    text: str = ""

    def answers(self, error: Exception) -> str:
        """Returns the reason to refuse a config for which the predicate raised ``error``: the predicate is at fault."""
        return f"{UNJUDGED} the constraint {self.name} raises {error_text(error)}; correct it there"


def clause(reason: str, n: int = 1) -> str:
    """Returns the end of a sentence that begins with "it", or ``n`` configs, and says why they are refused."""
    return reason if reason.startswith(UNJUDGED) else f"{'violates' if n == 1 else 'violate'}: {reason}"
