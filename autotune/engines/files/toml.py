"""Reads the TOML files of people and programs, and writes values of TOML."""

import json
import tomllib
from pathlib import Path
from typing import Any

from ...core import schema
from ...core.errors import UsageError
from .reading import refuse, whole_content


def read_toml(path: Path, most_bytes: int) -> dict[str, object]:
    """Returns the content of a file.

    Raises:
        UsageError: when it cannot be read, is longer than ``most_bytes``, or is not TOML.
    """
    text = whole_content(path, most_bytes)
    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        refuse(path, f"it is not TOML: {error}")


def checked(path: Path, where: str, check: schema.Check, content: object) -> Any:
    """Returns ``check(content)``. Raises UsageError that names the file and the place in it."""
    try:
        return check(content)
    except schema.Unsound as error:
        refuse(path, f"{where} {error}")


def written(name: str, value: object) -> str:
    """Returns the line ``name = value``. The value is text, a number, or a list of these. Raises as ``quoted``."""
    return f"{name} = {quoted(value)}\n"


def quoted(value: object) -> str:
    """Returns a value of TOML.

    Raises:
        UsageError: for text with characters that cannot be printed, such as the name of a file.
    """
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and not text.isprintable():
            raise UsageError(f"{schema.value_text(text)} cannot stand in a file of text, since it has other characters")
    return json.dumps(value, ensure_ascii=False)
