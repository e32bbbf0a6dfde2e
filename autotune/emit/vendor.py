"""Collects what an emitted package needs instead of autotune: core/ and runtime/ verbatim, and the definitions."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from .. import core
from ..core.definition import AnyKernel
from ..core.errors import UsageError

BROUGHT = "_autotune"  # the subpackage of an emitted package that holds the rooms
ROOMS = ("core", "runtime")
DOCSTRING = '"""What the kernel computes."""\n'
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


def definition_sources(kernel: AnyKernel) -> dict[str, str]:
    """Returns path in the folder of definitions -> text; imports from autotune are turned to those of the package.

    A definition of one file is called as the kernel, ``detect.py``. One with parts becomes a package, ``ddc/ddc.py``.
    One that leaves its ``arguments`` to the template's signature brings the template, which is read and never rendered.

    Raises:
        UsageError: when one imports anything but NumPy, the standard library, parts and autotune's public words.
    """
    first, *parts = kernel.source_paths
    template = (
        {} if hasattr(type(kernel), "arguments") else {f"{kernel.name}.cu.j2": kernel.template_beside.read_text()}
    )
    if not parts:
        return {f"{kernel.name}.py": _emitted(first, "..")} | template
    start, whole = first.with_name("__init__.py"), first.stem == first.parent.name == kernel.name
    return {f"{kernel.name}/{name}": text for name, text in template.items()} | {
        f"{kernel.name}/__init__.py": _emitted(start, "...") if whole and start.is_file() else DOCSTRING,
        f"{kernel.name}/{kernel.name}.py": _emitted(first, "..."),
        **{f"{kernel.name}/{path.name}": _emitted(path, "...") for path in parts},
    }


def _emitted(path: Path, above: str) -> str:
    """Returns the text with its imports; ``above``: dots from the file to the emitted package."""
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
                place = f"{above}{BROUGHT}.core" if module == "autotune" else f"{above}{BROUGHT}"
                line = lines[node.lineno - 1]
                head, rest = line[: node.col_offset], line[node.col_offset :]
                lines[node.lineno - 1] = head + rest.replace("autotune", place, 1)
            elif not path.with_name(f"{module[1:]}.py").is_file() if node.level else not _free(module):
                raise _refused(path, node, f"from {module} import ...")
    return "".join(lines)


def _free(module: str) -> bool:
    top = module.partition(".")[0]
    return top == "numpy" or top in sys.stdlib_module_names


def _refused(path: Path, node: ast.stmt, statement: str) -> UsageError:
    return UsageError(
        f"{path}:{node.lineno}: `{statement}` cannot be emitted: a definition may import NumPy, the standard library, "
        "parts beside it (`from .name import ...`) and, as `from autotune import ...`, its public words "
        f"({', '.join(sorted(core.__all__))})"
    )
