"""Finds the expression that a function of a config computes, by calling it with values that record each operation.

Where a value decides a branch, the function is called once with true and once with false, so the expression covers all
branches. A function that uses a value in another way, such as to look it up or to print it, has no expression.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..core.expressions import MOST_CHARACTERS

MOST_WAYS = 64  # branches of a function
SIGNS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"},
    **{"lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^"},
}
COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
BEFORE = {"neg": "-", "pos": "+", "invert": "~"}
CALLED = {"abs": "abs({})", "round": "round({})", "floor": "({} // 1)", "ceil": "(-(-{} // 1))"}


class _Untraceable(Exception):
    """The function does something that an expression cannot say."""


class _Way:
    """The decisions of one call: the given ones first, and true for all later ones."""

    def __init__(self, outcomes: Sequence[bool]) -> None:
        self._outcomes = outcomes
        self.conditions: list[str] = []

    def decide(self, text: str) -> bool:
        """Returns the decision for a value, and records its text as a condition."""
        number = len(self.conditions)
        self.conditions.append(text)
        if number >= MOST_WAYS:
            raise _Untraceable
        return self._outcomes[number] if number < len(self._outcomes) else True


class _Traced:
    """A value that knows its expression as text."""

    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class
    __hash__ = None  # type: ignore[assignment]  # it cannot be looked up

    def __init__(self, text: str, way: _Way) -> None:
        if len(text) > MOST_CHARACTERS:
            raise _Untraceable
        self.text, self.way = text, way

    def __bool__(self) -> bool:
        return self.way.decide(self.text)

    def __format__(self, form: str) -> str:
        raise _Untraceable

    def __str__(self) -> str:
        raise _Untraceable

    __repr__ = __str__


def _binary(sign: str, is_swapped: bool) -> Callable[[_Traced, object], _Traced]:
    def compute(self: _Traced, other: object) -> _Traced:
        a, b = (_text_of(other), self.text) if is_swapped else (self.text, _text_of(other))
        return _Traced(f"({a} {sign} {b})", self.way)

    return compute


def _unary(form: str) -> Callable[..., _Traced]:
    def compute(self: _Traced, *more: object) -> _Traced:
        if more:
            raise _Untraceable
        return _Traced(form.format(self.text), self.way)

    return compute


for _name, _sign in SIGNS.items():
    setattr(_Traced, f"__{_name}__", _binary(_sign, is_swapped=False))
    setattr(_Traced, f"__r{_name}__", _binary(_sign, is_swapped=True))
for _name, _sign in COMPARED.items():
    setattr(_Traced, f"__{_name}__", _binary(_sign, is_swapped=False))
for _name, _sign in BEFORE.items():
    setattr(_Traced, f"__{_name}__", _unary(f"({_sign}{{}})"))
for _name, _form in CALLED.items():
    setattr(_Traced, f"__{_name}__", _unary(_form))


def traced(function: Callable[[dict[str, Any]], object], names: Sequence[str]) -> str | None:
    """Returns the expression of parameters that a function of the config computes, or None.

    A function may also depend on things that a traced value hides, such as types, so the caller must compare both.
    """
    n_ways = 0

    def explored(outcomes: list[bool]) -> str:
        nonlocal n_ways
        n_ways += 1
        if n_ways > MOST_WAYS:
            raise _Untraceable
        way = _Way(outcomes)
        text = _text_of(function({name: _Traced(name, way) for name in names}))
        for number in reversed(range(len(outcomes), len(way.conditions))):
            condition = way.conditions[number]
            otherwise = explored([*outcomes, *[True] * (number - len(outcomes)), False])
            text = _either(condition, text, otherwise)
            if len(text) > MOST_CHARACTERS:
                raise _Untraceable
        return text

    try:
        return explored([])
    except Exception:  # the caller's function may raise anything
        return None


def _either(condition: str, text: str, otherwise: str) -> str:
    if otherwise == condition:
        return f"({condition} and {text})"
    return f"({condition} or {otherwise})" if text == condition else f"({text} if {condition} else {otherwise})"


def _text_of(value: object) -> str:
    """Returns the expression of a traced value, or the text of a number or a string; raises _Untraceable for others."""
    if isinstance(value, _Traced):
        return value.text
    if isinstance(value, np.generic) and not isinstance(value, np.floating | np.complexfloating):
        value = value.item()
    if isinstance(value, bool | int | float | np.float64) and isfinite(value):
        return f"({value!r})" if not isinstance(value, np.float64) else f"({float(value)!r})"
    if isinstance(value, str):
        return repr(value)
    raise _Untraceable


def agrees(
    function: Callable[[Any], object], expression: Callable[[Any], object], configs: Sequence[Mapping[str, Any]]
) -> bool:
    """Returns whether a function and an expression agree at all configs; both may raise the same type of error."""
    return all(_outcome(function, config) == _outcome(expression, config) for config in configs)


def _outcome(function: Callable[[Any], object], config: Mapping[str, Any]) -> object:
    try:
        return function(dict(config))
    except Exception as error:  # the caller's function may raise anything
        return type(error)
