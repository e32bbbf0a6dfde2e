"""Collects the files that an emitted package needs in place of autotune: rooms, definitions and templates."""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from .. import core
from ..core.definition import AnyKernel
from ..core.errors import UsageError
from ..core.library import library_path
from ..core.python_syntax import module_tree
from ..rendering.texts import with_named_files
from ..runtime.nvrtc import HEADERS, own_headers

BROUGHT = "_autotune"  # the subpackage of an emitted package that contains the rooms
ROOMS = ("core", "runtime", "rendering", "recommend")
TEMPLATES = f"{BROUGHT}/templates"
DOCSTRING = '"""What the kernel computes."""\n'
WORDS = "autotune.core"  # the room whose names `from autotune import ...` provides


def room_sources() -> dict[str, str]:
    """Returns path in the package -> text, for unchanged copies of the rooms."""
    start = '"""Unchanged copies of the lookup, the launcher and the predictor of autotune."""\n'
    return {f"{BROUGHT}/__init__.py": start, **{f"{BROUGHT}/{path}": text for path, text in _room_files()}}


def _room_files() -> Iterator[tuple[str, str]]:
    root = Path(__file__).parents[1]
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            yield str(path.relative_to(root)), path.read_text()
    for name, text in own_headers().items():
        yield f"{HEADERS.relative_to(root)}/{name}", text


def definition_sources(kernel: AnyKernel) -> dict[str, str]:
    """Returns path in the folder of definitions -> text; imports from autotune become imports from the package.

    A definition in one file has the kernel's name, ``detect.py``. A definition with parts becomes a package,
    ``ddc/ddc.py``. A template beside the definition is included, with the files that it names.

    Raises:
        UsageError: when one imports anything but NumPy, the standard library, parts and autotune's public names.
    """
    first, *parts = kernel.source_paths
    beside = kernel.template_beside
    template = with_named_files(beside, beside.parent, f"{kernel.name}.cu.j2") if beside.is_file() else {}
    if not parts:
        return {f"{kernel.name}.py": _emitted(first, "..")} | template
    start, whole = first.with_name("__init__.py"), first.stem == first.parent.name == kernel.name
    return {f"{kernel.name}/{name}": text for name, text in template.items()} | {
        f"{kernel.name}/__init__.py": _emitted(start, "...") if whole and start.is_file() else DOCSTRING,
        f"{kernel.name}/{kernel.name}.py": _emitted(first, "..."),
        **{f"{kernel.name}/{path.name}": _emitted(path, "...") for path in parts},
    }


def template_sources(kernels: Iterable[AnyKernel]) -> dict[str, str]:
    """Returns path in the package -> text, for the library's templates of these kernels and the files they name."""
    start = '"""Templates of the kernels, for configs without a record."""\n'
    found = {f"{TEMPLATES}/__init__.py": start}
    for kernel in kernels:
        path = kernel.template
        if path == kernel.template_beside:
            texts = {name: text for name, text in with_named_files(path, library_path(), "").items() if name}
        else:
            texts = with_named_files(path, library_path(), path.name)
        found |= {f"{TEMPLATES}/{name}": text for name, text in texts.items()}
    return found


def _emitted(path: Path, above: str) -> str:
    """Returns the text with adapted imports; ``above``: dots from the file to the emitted package."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    for node in ast.walk(module_tree(text)):
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
