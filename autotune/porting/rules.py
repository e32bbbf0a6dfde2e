"""Restrictions in all forms that scripts use: text, functions, and constraints of python-constraint."""

import inspect
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType
from typing import Any

from ..core.config import Config
from ..core.device import Device
from ..core.errors import UsageError
from ..core.expressions import checked_expression, names_of, value_of
from ..core.parameter import Constraint

N_COMPARED = 1000  # random combinations at which a function is asked what it reads
Choices = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Rule:
    """A restriction. ``said``: its name in errors. ``written``: its text, an expression of parameters; "": a function.

    ``holds`` is called for configs that have at least the parameters in ``reads``.
    """

    said: str
    written: str
    reads: tuple[str, ...]
    holds: Callable[[Mapping[str, object]], Any]

    @property
    def constraint(self) -> Constraint:
        """Returns the restriction as a constraint of a space."""

        def allows(problem: object, config: Config, device: Device) -> bool:
            return bool(self.holds(config))

        text = checked_expression(self.written, self.reads, "the restriction") if self.written else ""
        return Constraint(self.said, self.said, allows, False, self.reads, text)

    def told_error(self, config: Mapping[str, object], error: Exception) -> str:
        """Returns the message for a restriction that raised ``error`` at a config that all others allow."""
        at = ", ".join(f"{name}={value}" for name, value in config.items())
        return f"the restriction {self.said} raises {type(error).__name__} at {at}: {error}; make it return False there"


def rules_of(restrictions: Any, space: Choices) -> tuple[Rule, ...]:
    """Returns the restrictions of a call, from one restriction, a list of them, or None.

    Raises:
        UsageError: for a value that is not a restriction, or a name that is not a parameter.
    """
    if restrictions is None:
        return ()
    if not isinstance(restrictions, list | tuple) or _is_named(restrictions):
        restrictions = [restrictions]
    return tuple(rule_of(each, space) for each in restrictions)


def rule_of(restriction: Any, space: Choices) -> Rule:
    """Returns one restriction.

    Args:
        restriction: a text; a function of the config, of parameters by the names of its arguments, or of all values in
            order; a constraint of python-constraint; or a pair of one of these and the names of its parameters.
        space: name of each parameter -> its values.

    Raises:
        UsageError: for a value that is not a restriction, or a name that is not a parameter.
    """
    names = tuple(space)
    if _is_named(restriction):
        restriction, wanted = (
            restriction[0],
            (restriction[1],) if isinstance(restriction[1], str) else tuple(restriction[1]),
        )
        if unknown := [name for name in wanted if name not in space]:
            raise UsageError(
                f"the restriction on {', '.join(map(str, wanted))}: there is no {unknown[0]!r}; "
                f"there are {', '.join(names)}"
            )
    else:
        wanted = ()
    if isinstance(restriction, str):
        text = checked_expression(restriction, names, "the restriction")
        return Rule(
            repr(restriction.strip()), restriction.strip(), names_of(text), lambda config: value_of(text, config)
        )
    if hasattr(restriction, "preProcess"):
        return Rule(type(restriction).__name__, "", wanted or names, _solver_constraint(restriction, wanted or names))
    if not callable(restriction):
        raise UsageError(
            f"the restriction {restriction!r} must be a text, a function, (function, names), or a constraint"
        )
    call, reads = _caller(restriction, wanted, names)
    if reads == names:
        reads = _named_in(restriction, call, space)
    return Rule(_function_text(restriction), "", reads, lambda config: call({name: config[name] for name in reads}))


def _is_named(restriction: object) -> bool:
    """Returns whether the value is one restriction with the names of its parameters, not a list of restrictions."""
    if not isinstance(restriction, tuple) or len(restriction) != 2:
        return False
    is_names = isinstance(restriction[1], list | tuple) and all(isinstance(name, str) for name in restriction[1])
    is_name = isinstance(restriction[1], str) and restriction[1].isidentifier() and callable(restriction[0])
    return is_name or (is_names and (callable(restriction[0]) or isinstance(restriction[0], str)))


def _caller(
    function: Callable[..., Any], wanted: tuple[str, ...], names: tuple[str, ...]
) -> tuple[Callable[[Mapping[str, Any]], Any], tuple[str, ...]]:
    """Returns a function of a config that calls the caller's function, and the parameters that it reads."""
    if wanted:
        return lambda config: function(*(config[name] for name in wanted)), wanted
    own: list[inspect.Parameter] = []
    with suppress(TypeError, ValueError):  # a builtin has no signature
        own = list(inspect.signature(function).parameters.values())
    kinds = {each.kind for each in own}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    plain = [each for each in own if each.kind not in several and (each.default is each.empty or each.name in names)]
    if plain and all(each.name in names for each in plain) and inspect.Parameter.VAR_KEYWORD not in kinds:
        by_place = tuple(each.name for each in plain if each.kind is not each.KEYWORD_ONLY)
        by_name = tuple(each.name for each in plain if each.kind is each.KEYWORD_ONLY)

        def named(config: Mapping[str, Any]) -> Any:
            return function(*(config[name] for name in by_place), **{name: config[name] for name in by_name})

        if inspect.Parameter.VAR_POSITIONAL not in kinds:
            return named, (*by_place, *by_name)
    if inspect.Parameter.VAR_KEYWORD in kinds and all(each.name in names for each in plain):
        return lambda config: function(**config), names
    needed = [each for each in plain if each.kind is not each.KEYWORD_ONLY]
    if inspect.Parameter.VAR_POSITIONAL in kinds or len(needed) == len(names) > 1:
        return lambda config: function(*(config[name] for name in names)), names
    if len(needed) > 1:
        unknown = next(each.name for each in needed if each.name not in names)
        raise UsageError(
            f"the restriction {_function_text(function)}: there is no parameter {unknown!r}; "
            f"there are {', '.join(names)}"
        )
    return lambda config: function(dict(config)), names


def _solver_constraint(constraint: Any, names: tuple[str, ...]) -> Callable[[Mapping[str, object]], bool]:
    """Returns a function of a config that calls a constraint of python-constraint in the way of its solvers."""

    def holds(config: Mapping[str, object]) -> bool:
        variables, values = list(names), {name: config[name] for name in names}
        domains = {name: [value] for name, value in values.items()}
        pair = (constraint, variables)
        left, by_name = [pair], {name: [pair] for name in names}
        constraint.preProcess(variables, domains, left, by_name)  # some constraints decide here, and remove themselves
        return all(domains.values()) and (not left or bool(constraint(variables, domains, values)))

    return holds


def _named_in(function: Any, call: Callable[[Mapping[str, Any]], Any], space: Choices) -> tuple[str, ...]:
    """Returns the parameters that the code of a function names, if it reads no others at random combinations; else all.

    ``call``: calls it with a config.
    """
    texts = _texts_in(getattr(function, "__code__", None))
    named, draw = tuple(name for name in space if name in texts), random.Random(0)
    for _ in range(N_COMPARED):
        config = {name: draw.choice(values) for name, values in space.items()}
        if _outcome(call, config) != _outcome(call, {name: config[name] for name in named}):
            return tuple(space)
    return named


def _texts_in(code: object) -> set[str]:
    """Returns the texts among the constants of a function's code, and of the code in it."""
    consts = code.co_consts if isinstance(code, CodeType) else code if isinstance(code, tuple) else ()
    texts = {const for const in consts if isinstance(const, str)}
    return texts.union(*map(_texts_in, consts))


def _outcome(call: Callable[[Mapping[str, Any]], Any], config: Mapping[str, Any]) -> object:
    try:
        return call(config)
    except Exception as error:  # the caller's function may raise anything
        return type(error)


def _function_text(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return f"{name} (line {code.co_firstlineno})" if code is not None else str(name)
