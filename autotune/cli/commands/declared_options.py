"""Options of commands that follow from settings' declarations (``system.setting``)."""

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

from ...system.limits import Range
from ...system.setting import COMMANDS, Declared, declared
from .options import duration, in_range

Command = Callable[..., None]


def with_settings(
    kind: type[Any], into: str = "settings", only: Collection[str] = (), without: Collection[str] = ()
) -> Callable[[Command], Command]:
    """Returns a decorator: the command has an option for each setting of a dataclass that commands may give.

    The function takes those that are given in a dict, as its argument ``into``. ``only``: the names of the settings
    that have an option; (): all. ``without``: the names of those that have none.
    """
    of_kind = [one for one in declared(kind).values() if one.setting.where >= COMMANDS and one.name not in without]
    chosen = [one for one in of_kind if one.name in only or not only]

    def decorated(function: Command) -> Command:
        @wraps(function)
        def command(**given: Any) -> None:
            own = {one.name: given.pop(one.name) for one in chosen}
            function(**given, **{into: {name: value for name, value in own.items() if value not in (None, [])}})

        parameters = list[inspect.Parameter]()
        for name, one in inspect.signature(function, eval_str=True).parameters.items():
            parameters.extend(map(_parameter, chosen) if name == into else [one.replace(kind=one.KEYWORD_ONLY)])
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorated


def _parameter(one: Declared) -> inspect.Parameter:
    """Returns the parameter of an option, whose value is None, or an empty list, where it is not given."""
    allowed, is_list = one.setting.allowed, one.kinds[0] in (tuple, Mapping)
    more: dict[str, Any] = {}
    if isinstance(allowed, Range):
        more = {"callback": in_range(allowed)}
        more |= {"parser": duration, "metavar": "SECONDS|5m|2h"} if allowed.unit == "s" else {}
    kind = list[str] if is_list else one.kinds[0] if one.is_needed else one.kinds[0] | None
    hint = Annotated[kind, typer.Option(one.option, help=one.help, **more)]  # type: ignore[valid-type]
    default: Any = inspect.Parameter.empty if one.is_needed else [] if is_list else None
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
