"""Finds the expression that a function of a config computes, by calling it with values that write down what is done.

A value that decides which way a function goes is both true and false, in calls of their own, so the expression has
all ways. A function that does anything else with a value, such as to look it up or to print it, has none.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..core.expressions import MOST_CHARACTERS

MOST_WAYS = 64  # through a function
SIGNS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"},
    **{"lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^"},
}
COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
BEFORE = {"neg": "-", "pos": "+", "invert": "~"}
CALLED = {"abs": "abs({})", "round": "round({})", "floor": "({} // 1)", "ceil": "(-(-{} // 1))"}


class _Untraceable(Exception):
    """A function does what no expression says."""


class _Way:
    """The decisions of one call: first those that are given, then all are true."""

    def __init__(self, given: Sequence[bool]) -> None:
        self._given = given
        self.conditions: list[str] = []

    def decide(self, text: str) -> bool:
        """Returns whether a value is taken for true."""
        number = len(self.conditions)
        self.conditions.append(text)
        if number >= MOST_WAYS:
            raise _Untraceable
        return self._given[number] if number < len(self._given) else True


class _Traced:
    """A value of which the text is known."""

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
    """Returns what a function of the config computes as an expression of parameters, or None.

    A function may depend on what no value shows, such as its type: the caller compares both.
    """
    n_ways = 0

    def explored(given: list[bool]) -> str:
        nonlocal n_ways
        n_ways += 1
        if n_ways > MOST_WAYS:
            raise _Untraceable
        way = _Way(given)
        text = _text_of(function({name: _Traced(name, way) for name in names}))
        for number in reversed(range(len(given), len(way.conditions))):
            condition = way.conditions[number]
            otherwise = explored([*given, *[True] * (number - len(given)), False])
            text = _either(condition, text, otherwise)
            if len(text) > MOST_CHARACTERS:
                raise _Untraceable
        return text

    try:
        return explored([])
    except Exception:  # a function of the caller's may raise anything
        return None


def _either(condition: str, text: str, otherwise: str) -> str:
    if otherwise == condition:
        return f"({condition} and {text})"
    return f"({condition} or {otherwise})" if text == condition else f"({text} if {condition} else {otherwise})"


def _text_of(found: object) -> str:
    """Returns the text of a value, of a number, of a text over parameters, or of the product of a list of such."""
    if isinstance(found, _Traced):
        return found.text
    if isinstance(found, np.generic) and not isinstance(found, np.floating | np.complexfloating):
        found = found.item()
    if isinstance(found, bool | int | float | np.float64) and isfinite(found):
        return f"({found!r})" if not isinstance(found, np.float64) else f"({float(found)!r})"
    if isinstance(found, str):
        return repr(found)
    raise _Untraceable


def agrees(
    function: Callable[[Any], object], expression: Callable[[Any], object], configs: Sequence[Mapping[str, Any]]
) -> bool:
    """Returns whether a function and an expression say the same of all configs; they may both raise."""
    return all(_said(function, config) == _said(expression, config) for config in configs)


def _said(function: Callable[[Any], object], config: Mapping[str, Any]) -> object:
    try:
        return function(dict(config))
    except Exception as error:  # a function of the caller's may raise anything
        return type(error)
