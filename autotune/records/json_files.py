"""The JSON files of a record: sealed, written whole with one member a line, and checked as they are read."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..core.files import content_of, write_whole
from ..core.schema import LEAST_DIGITS, Unsound, parse, seal
from .damage import Damaged, NewerFormat
from .trial_log import plain_number

T = TypeVar("T")


class Newer(Unsound):
    """A later version wrote the file, in an unknown format."""


def read_json(path: Path, check: Callable[[Any], T]) -> T:
    """Returns what ``check`` makes of the JSON at ``path``.

    Raises:
        Damaged: when it cannot be read, or ``check`` raises Unsound.
        NewerFormat: when ``check`` raises Newer.
    """
    try:
        return check(parse(content_of(path)))
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror or error}") from error
    except Newer as error:
        raise NewerFormat(f"{path} {error}") from error
    except Unsound as error:
        raise Damaged(f"{path} is damaged: {error}") from error


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Writes members, one a line; of a list of lists or objects one of these. It is on the disk when this returns."""
    content = seal(json.loads(json.dumps(content, default=plain_number, allow_nan=False)), LEAST_DIGITS)
    lines = ",\n".join(f"{json.dumps(name)}: {_member(value)}" for name, value in content.items())
    write_whole(path, f"{{\n{lines}\n}}\n".encode(), is_durable=True)


def _member(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n" + ",\n".join(map(_compact, value)) + "\n]"
    return _compact(value)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
