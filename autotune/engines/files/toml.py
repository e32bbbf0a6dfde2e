"""Reads the TOML files of people and programs, and writes values of TOML."""

import json
import tomllib
from pathlib import Path
from typing import Any

from ...core import schema
from .reading import Bytes, refuse


def read_toml(path: Path, most_bytes: int) -> dict[str, object]:
    """Returns the content of a file.

    Raises:
        UsageError: when it cannot be read, is longer than ``most_bytes``, or is not TOML.
    """
    file = Bytes(path)
    try:
        text = file.take(0, most_bytes + 1).tobytes()
    finally:
        file.close()
    if len(text) > most_bytes:
        refuse(path, f"it is longer than {most_bytes} bytes, the most for such a file")
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
    """Returns the line ``name = value``. The value is text, a number, or a list of these."""
    return f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
