"""Settings that are declared once: the type, the check, the help and the default of each stand at its field.

A dataclass whose fields are ``Annotated[type, Setting(...)]`` gives the options of a command, the keys of a file, the
keywords of a call, the check of a value, whichever way it came, and the rows of a page (docs/figures.py).
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial, wraps
from itertools import repeat
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ..core.errors import UsageError, one_line
from ..core.schema import Check, Unsound, members_of, suggestion, value_text
from .limits import Range, is_of

CALLS, COMMANDS, FILES = range(3)
log = logging.getLogger("autotune")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
WORDS: Mapping[type, str] = {
    Path: "a path",
    str: "a name",
    bool: "true or false",
    tuple: "a tuple of texts",
    Mapping: "a table",
}


@dataclass(frozen=True)
class Setting:
    """Holds what is said of a setting beside its name, type and default.

    Args:
        help: what it does, in a sentence or two.
        allowed: the range of a number, or all values; None: any of the type. Or a check of what a file has, which it
            turns into what calls give; or the dataclass of a table, or of several. Calls may then give anything.
        usual: what a default of None stands for, in words.
        option: the name of a command's option; "": the field's name.
        was: names that are taken, too, until 0.4, with one line.
        where: who may give it: CALLS alone, COMMANDS, too, or FILES, too.
        key: the name in a file; "": the field's name.
        words: what a value must be, where the type's words do not say it.
    """

    help: str
    allowed: Range | tuple[object, ...] | Check | None = None
    usual: str = ""
    option: str = ""
    was: tuple[str, ...] = ()
    where: int = FILES
    key: str = ""
    words: str = ""


@dataclass(frozen=True)
class Declared:
    """A setting with its field's name, its types without None, and its default. ``may_lack``: None is a value of it."""

    name: str
    kinds: tuple[type, ...]
    default: object
    may_lack: bool
    setting: Setting

    @property
    def key(self) -> str:
        """Returns the name in a file."""
        return self.setting.key or self.name

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
        """Raises UsageError unless ``value``, of a call, is of the type and in the range."""
        if wanted := self._wanted(value):
            raise UsageError(f"{self.key}={value!r} must be {wanted}")

    def of_file(self, value: object) -> Any:
        """Returns a file's value as calls give it; a table stays as it is. Raises Unsound for a wrong value."""
        if callable(self.setting.allowed):
            return value if isinstance(self.setting.allowed, type) else self.setting.allowed(value)
        if wanted := self._wanted(found := self.as_given(value)):
            raise Unsound(f"is {value_text(value)}, must be {wanted.removesuffix(', or nothing')}")
        return found

    def as_given(self, value: object) -> Any:
        """Returns a list as a tuple, and the text of a path as a path, where the setting is one."""
        if isinstance(value, list) and tuple in self.kinds:
            return tuple(value)
        return Path(value) if self.kinds[0] is Path and isinstance(value, (str, os.PathLike)) else value

    def _wanted(self, value: object) -> str:
        """Returns what ``value`` must be, in words; "" if it is."""
        allowed = self.setting.allowed
        if callable(allowed) or (value is None and self.may_lack):
            return ""
        if isinstance(allowed, tuple):
            is_one = value in allowed and not isinstance(value, float)  # 8.0 is no 8
            return "" if is_one else f"one of {', '.join(map(str, allowed))}"
        if isinstance(allowed, Range):
            return "" if allowed.holds(value) else f"{allowed}{', or nothing' if self.may_lack else ''}"
        words = self.setting.words or WORDS[self.kinds[0]]
        return "" if is_of(value, self.kinds) else words + (", or None" if self.may_lack else "")


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
    before = {old: name for name, one in declared(kind).items() for old in one.setting.was}
    kind.__init__ = takes_old_names(**before)(kind.__init__)  # type: ignore[method-assign]
    return kind


def takes_old_names(**before: str) -> Callable[[F], F]:
    """Makes a function take old keywords, too, until 0.4; a line of the log tells each. ``before``: old=new."""

    def decorated(function: F) -> F:
        @wraps(function)
        def called(*values: Any, **given: Any) -> Any:
            for old in sorted(before.keys() & given.keys()):
                if before[old] in given:
                    raise UsageError(f"{before[old]} is given twice")
                log.warning("%s is called %s now; the old name is taken until 0.4", old, before[old])
                given[before[old]] = given.pop(old)
            return function(*values, **given)

        return cast(F, called)

    return decorated


def settings_given(kind: type[Any], given: Mapping[str, Any], where: int = CALLS) -> dict[str, Any]:
    """Returns what is ``given``, by name, as a dataclass takes it: lists as tuples, and texts that are paths as paths.

    ``where``: whence it comes.

    Raises:
        UsageError: for a name that is neither a setting's nor an old one.
    """
    own = [one for one in declared(kind).values() if one.setting.where >= where]
    known = {one.key if where == FILES else one.name: one for one in own}
    before = {old: one for one in own for old in one.setting.was}
    if unknown := sorted(set(given) - known.keys() - before.keys()):
        near = suggestion(unknown[0], [*known])
        raise UsageError(f"{', '.join(unknown)} is not a setting; settings are {', '.join(known)}{near}")
    found = {name: (known | before)[name].as_given(value) for name, value in given.items()}
    return {known[name].name if name in known else name: value for name, value in found.items()}


def of_file(kind: type[T], text: Mapping[str, Any]) -> T:
    """Returns the dataclass of a file's ``text``. Raises UsageError for an unknown or missing key, or a wrong value."""
    given = settings_given(kind, text, FILES)
    if lacking := [one.key for one in declared(kind).values() if one.is_needed and one.name not in given]:
        raise UsageError(f"it needs {lacking[0]} = ...")
    return kind(**given)


def in_files(kind: type[Any]) -> Mapping[str, Declared]:
    """Returns the settings of a dataclass that files may give, by key."""
    return {one.key: one for one in declared(kind).values() if one.setting.where >= FILES}


def file_checks(kind: type[Any]) -> dict[str, Check]:
    """Returns the checks of a file's values for the settings of a dataclass, by key."""
    return {key: one.of_file for key, one in in_files(kind).items()}


def table_check(kind: type[T]) -> Check:
    """Returns a check for a table of a file with the settings of a dataclass, which it becomes."""
    return lambda value: kind(**_given_in(kind, value))


def read_settings(path: Path, where: str, kind: type[T], content: object, **more: object) -> T:
    """Returns the dataclass whose settings are the ``content`` of a file, or of a table in it.

    A relative path begins at the file's folder.

    Args:
        path: the file, for errors; a field ``path``, which is not a setting, has it, too.
        where: the table's name in errors; "it": the file.
        more: fields that are not settings.

    Raises:
        UsageError: for a wrong table, in one line with the file, the table and the key.
    """
    try:
        given = _given_in(kind, content)
    except Unsound as error:
        raise UsageError(one_line(f"{path}: {where} {error}")) from None
    for key, one in in_files(kind).items():
        value, table = given.get(one.name), one.setting.allowed
        if isinstance(value, str) and Path in one.kinds:
            given[one.name] = path.parent / value
        elif isinstance(table, type) and one.name in given:
            several = value if isinstance(value, list) and value and tuple in one.kinds else [value]
            names = [f"[[{key}]] {n}" for n in range(1, len(several) + 1)] if len(several) > 1 else [f"[{key}]"]
            made: tuple[Any, ...] = tuple(map(partial(read_settings, path), names, repeat(table), several))
            given[one.name] = made if tuple in one.kinds else made[0]
    more |= {"path": path} if any(each.name == "path" for each in fields(kind)) else {}  # type: ignore[arg-type]
    try:
        return kind(**given, **more)
    except UsageError as error:
        raise UsageError(one_line(f"{path}: {'' if where == 'it' else f'{where} '}{error}")) from None


def shared(settings: object, kind: type[Any]) -> dict[str, Any]:
    """Returns the values of the fields that ``settings`` and a dataclass both have."""
    return {each.name: getattr(settings, each.name) for each in fields(kind) if each.name in vars(settings)}


def _given_in(kind: type[Any], content: object) -> dict[str, Any]:
    known = in_files(kind)
    needed = [key for key, one in known.items() if one.is_needed]
    found = members_of(file_checks(kind), needed)(content)
    return {known[key].name: value for key, value in found.items()}
