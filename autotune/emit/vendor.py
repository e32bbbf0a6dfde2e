"""Collects what an emitted package needs instead of autotune: core/ and runtime/ verbatim, and the definitions."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import core
from ..core.definition import Kernel
from ..core.errors import UsageError

BROUGHT = "_autotune"  # the subpackage of an emitted package that holds the rooms
ROOMS = ("core", "runtime")
WORDS = "autotune.core"  # the room whose words `from autotune import ...` gives


def room_sources() -> dict[str, str]:
    """Returns the sources of core/ and runtime/ verbatim: path in the package -> text."""
    start = '"""The lookup and the launcher, copied from autotune unchanged."""\n'
    return {f"{BROUGHT}/__init__.py": start, **{f"{BROUGHT}/{path}": text for path, text in _room_files()}}


def _room_files() -> Iterator[tuple[str, str]]:
    root = Path(__file__).parents[1]
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            yield str(path.relative_to(root)), path.read_text()


def definition_sources(kernel: Kernel[Any]) -> dict[str, str]:
    """File name -> text of the definition, called as the kernel, and of its parts; imports from autotune are turned to
    those of the package.

    Raises:
        UsageError: when one imports anything but NumPy, the standard library, parts and autotune's public words.
    """
    first, *parts = kernel.source_paths
    return {f"{kernel.name}.py": _emitted(first), **{path.name: _emitted(path) for path in parts}}


def _emitted(path: Path) -> str:
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not _free(alias.name):
                    raise _refused(path, node, f"import {alias.name}")
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module == "autotune" or f"{module}.".startswith(f"{WORDS}."):
                names = [alias.name for alias in node.names]
                unknown = [name for name in names if module == "autotune" and name not in core.__all__]
                if unknown:
                    raise _refused(path, node, f"from autotune import {', '.join(unknown)}")
                place = f"..{BROUGHT}.core" if module == "autotune" else f"..{BROUGHT}"
                line = lines[node.lineno - 1]
                head, rest = line[: node.col_offset], line[node.col_offset :]
                lines[node.lineno - 1] = head + rest.replace("autotune", place, 1)
            elif not module.startswith("._") and (node.level or not _free(module)):
                raise _refused(path, node, f"from {module} import ...")
    return "".join(lines)


def _free(module: str) -> bool:
    top = module.partition(".")[0]
    return top == "numpy" or top in sys.stdlib_module_names


def _refused(path: Path, node: ast.stmt, statement: str) -> UsageError:
    return UsageError(
        f"{path}:{node.lineno}: `{statement}` cannot be emitted: a definition may import NumPy, the standard library, "
        "parts beside it (`from ._name import ...`) and, as `from autotune import ...`, its public words "
        f"({', '.join(sorted(core.__all__))})"
    )
