"""Settings that are declared once: the type, the check, the help and the default of each stand at its field.

A dataclass whose fields are ``Annotated[type, Setting(...)]`` gives the options of a command, the keys of a file, the
keywords of a call, and the check of a value, whichever way it came.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from ..core.errors import UsageError
from .limits import Range, check_type

CALLS, COMMANDS, FILES = range(3)
ANY = "any"  # a value that is checked where it is used
log = logging.getLogger("autotune")
T = TypeVar("T")
WORDS: Mapping[type, str] = {
    Path: "a path",
    str: "a name",
    bool: "true or false",
    tuple: "a tuple of texts",
    Mapping: "a dict of expressions by name",
}


@dataclass(frozen=True)
class Setting:
    """Holds what is said of a setting beside its name, type and default.

    Args:
        help: what it does, in a sentence or two.
        allowed: the range of a number, or all values; None: any of the type; ANY: anything.
        usual: what a default of None stands for, in words.
        option: the name of a command's option; "": the field's name.
        was: names that are taken, too, until 0.4, with one line.
        where: who may give it: CALLS alone, COMMANDS, too, or FILES, too.
    """

    help: str
    allowed: Range | tuple[object, ...] | str | None = None
    usual: str = ""
    option: str = ""
    was: tuple[str, ...] = ()
    where: int = FILES


@dataclass(frozen=True)
class Declared:
    """A setting with its field's name, its types without None, and its default. ``may_lack``: None is a value of it."""

    name: str
    kinds: tuple[type, ...]
    default: object
    may_lack: bool
    setting: Setting

    @property
    def option(self) -> str:
        """Returns the name of a command's option."""
        return self.setting.option or f"--{self.name.replace('_', '-')}"

    @property
    def is_needed(self) -> bool:
        """Returns whether it has no default."""
        return self.default is MISSING

    @property
    def help(self) -> str:
        """Returns the help with the default and the range."""
        return f"{self.setting.help} [{'; '.join(self.limits)}]" if self.limits else self.setting.help

    @property
    def limits(self) -> list[str]:
        """Returns the default and the range in words, as far as they say something."""
        usual = self.setting.usual or (str(self.default) if self.default and not self.is_needed else "")
        allowed = self.setting.allowed
        limits = [f"default: {usual}"] if usual else []
        return limits + ([allowed.brief] if isinstance(allowed, Range) and allowed.is_integer else [])

    def check(self, value: object) -> None:
        """Raises UsageError unless ``value`` is of the type and in the range."""
        allowed = self.setting.allowed
        if isinstance(allowed, tuple):
            if not (value in allowed or (value is None and self.may_lack)):
                raise UsageError(f"{self.name}={value!r} must be one of {', '.join(map(str, allowed))}")
        elif isinstance(allowed, Range):
            if not (allowed.holds(value) or (value is None and self.may_lack)):
                raise UsageError(f"{self.name}={value!r} must be {allowed}{', or nothing' if self.may_lack else ''}")
        elif allowed != ANY:
            kinds = (*self.kinds, NoneType) if self.may_lack else self.kinds
            check_type(self.name, value, kinds, WORDS[self.kinds[0]] + (", or None" if self.may_lack else ""))


def declared(kind: type[Any]) -> Mapping[str, Declared]:
    """Returns the settings of a dataclass by name, in the order of its fields."""
    hints, found = get_type_hints(kind, include_extras=True), {}
    for each in fields(kind):
        hint = hints[each.name]
        setting = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Setting)), None)
        if setting is None:
            continue
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        kinds = get_args(plain) if isinstance(plain, UnionType) else (plain,)
        own = tuple(get_origin(one) or one for one in kinds if one is not NoneType)
        default: object = each.default if each.default_factory is MISSING else each.default_factory()
        found[each.name] = Declared(each.name, own, default, NoneType in kinds, setting)
    return found


def check_settings(instance: object) -> None:
    """Raises UsageError for the first field whose value is not allowed."""
    for name, one in declared(type(instance)).items():
        one.check(getattr(instance, name))


def with_old_names(kind: type[T]) -> type[T]:
    """Makes a dataclass take old names of its settings as keywords, too, until 0.4; a line of the log tells each."""
    make, before = kind.__init__, {old: name for name, one in declared(kind).items() for old in one.setting.was}

    @wraps(make)
    def made(self: T, *values: Any, **given: Any) -> None:
        for old in sorted(before.keys() & given.keys()):
            if before[old] in given:
                raise UsageError(f"{before[old]} is given twice")
            log.warning("%s is called %s now; the old name is taken until 0.4", old, before[old])
            given[before[old]] = given.pop(old)
        make(self, *values, **given)

    kind.__init__ = made  # type: ignore[method-assign, assignment]
    return kind


def settings_given(kind: type[Any], given: Mapping[str, Any], where: int = CALLS) -> dict[str, Any]:
    """Returns what is ``given``, as a dataclass takes it: lists as tuples, and texts that are paths as paths.

    ``where``: whence it comes.

    Raises:
        UsageError: for a name that is no setting's, nor an old one.
    """
    known = {name: one for name, one in declared(kind).items() if one.setting.where >= where}
    before = {old for one in known.values() for old in one.setting.was}
    if unknown := sorted(set(given) - known.keys() - before):
        raise UsageError(f"{', '.join(unknown)} is not a setting; settings are {', '.join(known)}")
    found = dict[str, Any]()
    for name, value in given.items():
        is_path = name in known and known[name].kinds[0] is Path and isinstance(value, (str, os.PathLike))
        found[name] = Path(value) if is_path else tuple(value) if isinstance(value, list) else value
    return found
