"""Formats of files, one module for each: recordings to read, and voltages and visibilities to write.

Each module of this folder except ``interface`` is a format, and has the attributes that ``interface.Format`` lists.
Installed packages add formats by entry points in the group ``autotune.formats``, whose names are suffixes without dot.
"""

from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, cast

from ....core.errors import UsageError
from ....source.installed import FORMATS, installed, load_installed
from ..reading import refuse, refuse_existing
from .interface import SAMPLES, VISIBILITIES, VOLTAGES, Format, either


@cache
def own() -> tuple[Format, ...]:
    """Returns the formats of this folder, in the order of their modules' names."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name != "interface")
    return tuple(cast(Format, import_module(f"{__name__}.{name}")) for name in names)


def that_hold(holds: str) -> list[Any]:
    """Returns the formats of this folder for samples, voltages or visibilities."""
    return [each for each in own() if each.holds == holds]


def added(holds: str) -> list[Any]:
    """Returns the formats of installed packages for such data, without those that cannot be loaded."""
    found = []
    for name in sorted(installed(FORMATS)):
        with suppress(UsageError):
            found.append(_added(name))
    return [each for each in found if each.holds == holds]


def suffixes(holds: str, does: str) -> tuple[str, ...]:
    """Returns the suffixes of the formats in this folder that have ``read`` or ``write``, as ``does`` says."""
    of_formats = [suffix for each in that_hold(holds) if hasattr(each, does) for suffix in each.suffixes]
    return tuple(sorted(of_formats))


def names(holds: str) -> list[str]:
    """Returns the names of the formats in this folder, a few words each."""
    return [each.help for each in that_hold(holds)]


def find(suffix: str, holds: str, does: str) -> Any:
    """Returns the format that can read or write files with a suffix, or None. Formats in this folder come first; one
    of an installed package is asked for such data and tasks as none of them has for this suffix.

    Raises:
        UsageError: for a broken format of an installed package.
    """
    fits = (each for each in that_hold(holds) if suffix in each.suffixes and hasattr(each, does))
    if (found := next(fits, None)) is not None or suffix[1:] not in installed(FORMATS):
        return found
    added = _added(suffix[1:])
    return added if added.holds == holds and hasattr(added, does) else None


def for_new(path: Path, holds: str) -> Any:
    """Returns the format of a new file.

    Raises:
        UsageError: when no format for such data has its suffix, the file exists, or its folder does not.
    """
    format_of_file = find(path.suffix, holds, "write")
    if format_of_file is None:
        added = sorted(f".{name}" for name in installed(FORMATS))
        more = f"; installed packages add {', '.join(added)}, for other data" if added else ""
        refuse(path, f"its name must end in {either(suffixes(holds, 'write'))} for {holds}{more}")
    if path.exists():
        refuse_existing(path)
    if not path.parent.is_dir():
        refuse(path, f"there is no folder {path.parent}: make it, or name another one")
    return format_of_file


def _added(name: str) -> Format:
    """Returns a format of an installed package. Raises UsageError when it is broken."""
    added = cast(Format, load_installed(FORMATS, name, Format))
    where = f"the format {name!r} of {FORMATS}"
    if f".{name}" not in added.suffixes:
        raise UsageError(f"{where} has the suffixes {added.suffixes!r}: its entry point must be called as one of them")
    if added.holds not in (SAMPLES, VOLTAGES, VISIBILITIES):
        raise UsageError(f"{where} has holds={added.holds!r}, must be {SAMPLES}, {VOLTAGES} or {VISIBILITIES}")
    if not hasattr(added, "read") and not hasattr(added, "write"):
        raise UsageError(f"{where} lacks both read and write; it must have one of them")
    return added
