"""Restrictions in all the ways in which scripts say them: text, functions of the config, and of named values."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..core.errors import UsageError
from ..core.expressions import checked_expression, value_of


@dataclass(frozen=True)
class Rule:
    """A restriction: ``text`` over parameters as Python, or "" of a function. ``said`` is what the caller wrote."""

    said: str
    text: str
    holds: Callable[[Mapping[str, object]], Any]

    def allows(self, config: Mapping[str, object]) -> bool:
        """Returns whether a config is allowed.

        Raises:
            UsageError: when the restriction cannot be computed; names it and the config.
        """
        try:
            return bool(self.holds(config))
        except UsageError:
            raise
        except Exception as error:  # a function of the caller's may raise anything
            at = ", ".join(f"{name}={value}" for name, value in config.items())
            raise UsageError(
                f"the restriction {self.said} raises {type(error).__name__} at {at}: {error}; "
                "write it so that it says no there"
            ) from error


def rule_of(given: object, names: Sequence[str]) -> Rule:
    """Returns a restriction; a function gets the config, or the values that its arguments name, or all in order.

    Raises:
        UsageError: for what is none, or names what is not a parameter.
    """
    if isinstance(given, str):
        text = checked_expression(given, names, "the restriction")
        return Rule(repr(given.strip()), text, lambda config: value_of(text, config))
    if isinstance(given, tuple | list) and len(given) == 2 and callable(given[0]):
        function, wanted = given[0], tuple(given[1])
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError(f"the restriction on {', '.join(map(str, wanted))}: there is no {unknown[0]!r}")
        return Rule(_told(function), "", lambda config: function(*(config[name] for name in wanted)))
    if not callable(given):
        raise UsageError(f"the restriction {given!r} must be a text, a function, or (function, names)")
    own = _named(given, names)
    if own is not None:
        return Rule(_told(given), "", lambda config: given(*(config[name] for name in own)))
    return Rule(_told(given), "", lambda config: given(dict(config)))


def _named(function: Callable[..., Any], names: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the parameters whose values a function takes, by its own arguments; None: it takes the config."""
    with suppress(TypeError, ValueError):  # a builtin has no signature
        own = list(inspect.signature(function).parameters.values())
        if any(each.kind is each.VAR_POSITIONAL for each in own):
            return tuple(names)
        if own and all(each.name in names for each in own):
            return tuple(each.name for each in own)
    return None


def _told(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", "function")
    return f"{name} (line {code.co_firstlineno})" if code is not None else str(name)
