"""Options of commands that follow from settings' declarations (``system.setting``)."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

from ..system.setting import COMMANDS, Declared, declared
from .commands.options import duration, in_range


def with_settings(kind: type[Any], *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a decorator: the command has an option for each setting of a dataclass, or for those that are named.

    The function takes those that are given in a dict, as its argument ``settings``.
    """
    chosen = [one for one in declared(kind).values() if (one.name in names if names else one.setting.where >= COMMANDS)]

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def command(**given: Any) -> None:
            of_kind = {one.name: given.pop(one.name) for one in chosen}
            function(**given, settings={name: value for name, value in of_kind.items() if value not in (None, [])})

        parameters = list[inspect.Parameter]()
        for name, one in inspect.signature(function, eval_str=True).parameters.items():
            here = map(_parameter, chosen) if name == "settings" else [one.replace(kind=one.KEYWORD_ONLY)]
            parameters.extend(here)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorated


def _parameter(one: Declared) -> inspect.Parameter:
    """Returns the parameter of an option, whose value is None, or an empty list, where it is not given."""
    allowed, is_list = one.setting.allowed, one.kinds[0] in (tuple, Mapping)
    more: dict[str, Any] = {}
    if allowed is not None:
        more = {"callback": in_range(allowed)}
        more |= {"parser": duration, "metavar": "SECONDS|5m|2h"} if allowed.unit == "s" else {}
    kind = list[str] if is_list else one.kinds[0] | None
    hint = Annotated[kind, typer.Option(one.option, help=one.help, **more)]  # type: ignore[valid-type]
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=[] if is_list else None, annotation=hint)
