"""Options of commands that follow from settings' declarations (``system.setting``)."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, TypeVar

import typer

from ...system.limits import Range
from ...system.setting import COMMANDS, Declared, declared
from .options import duration, in_range, integer

F = TypeVar("F", bound=Callable[..., None])


def with_settings(*kinds: type[Any], only: Collection[str] = (), without: Collection[str] = ()) -> Callable[[F], F]:
    """Returns a decorator: a command has an option for each setting of some dataclasses that commands may give.

    They stand in place of the function's ``**options``, of which ``given_of`` returns those that are given.

    ``only``: the names of the settings that have an option; (): all. ``without``: the names of those that have none.
    """
    of_kinds = [one for kind in kinds for one in declared(kind).values() if one.setting.where >= COMMANDS]
    chosen = [one for one in of_kinds if one.name not in without and (one.name in only or not only)]

    def decorated(function: F) -> F:
        parameters = list[inspect.Parameter]()
        for one in inspect.signature(function, eval_str=True).parameters.values():
            here = map(_parameter, chosen) if one.kind == one.VAR_KEYWORD else [one.replace(kind=one.KEYWORD_ONLY)]
            parameters.extend(here)
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        function.__annotations__ = {one.name: one.annotation for one in parameters}
        return function

    return decorated


def given_of(kind: type[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a dataclass among a command's ``options`` that were given."""
    return {name: options[name] for name in declared(kind) if options.get(name) not in (None, [])}


def _parameter(one: Declared) -> inspect.Parameter:
    """Returns the parameter of an option, whose value is None, or an empty list, where it is not given."""
    allowed, is_list = one.setting.allowed, one.kinds[0] in (tuple, Mapping)
    more: dict[str, Any] = {}
    if isinstance(allowed, Range):
        more = {"callback": in_range(allowed)}
        if allowed.unit == "s":
            more |= {"parser": duration, "metavar": "SECONDS|5m|2h"}
        elif allowed.is_integer:
            more |= {"parser": integer(allowed), "metavar": "NUMBER"}
    kind = list[str] if is_list else one.kinds[0] if one.is_needed else one.kinds[0] | None
    hint = Annotated[kind, typer.Option(one.option, help=one.help, **more)]  # type: ignore[valid-type]
    default: Any = inspect.Parameter.empty if one.is_needed else [] if is_list else None
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
