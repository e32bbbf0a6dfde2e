"""What an emitted package brings along so that it needs no autotune: verbatim core modules, and the definitions."""

import ast
import sys
from pathlib import Path
from typing import Any

import autotune

from .definition import Kernel
from .errors import UsageError

CORE = (
    "errors", "files", "kept", "schema", "enumerate", "space", "samples", "definition", "nvrtc", "wisdom",
    "signature", "lookup", "gpu", "arrays", "tensor_map", "launcher", "package",
)  # fmt: skip
OFFERS = ("definition", "space", "samples", "errors")  # the core modules whose words a definition may import
DEFINITION_MODULES = ("autotune", *(f"autotune.{name}" for name in OFFERS))


def core_sources() -> dict[str, str]:
    """File name -> text of the folder ``_core``."""
    here = Path(__file__).parent
    words = _words()
    lines = [f"from .{module} import {', '.join(sorted(names))}" for module, names in words.items()]
    everything = sorted(name for names in words.values() for name in names)
    start = '"""The lookup and the launcher, copied from autotune unchanged."""\n\n'
    start += "\n".join(lines) + f"\n\n__all__ = {everything!r}\n"
    return {"__init__.py": start, **{f"{name}.py": (here / f"{name}.py").read_text() for name in CORE}}


def definition_sources(kernel: Kernel[Any]) -> dict[str, str]:
    """File name -> text of the definition, called as the kernel, and of its parts; imports from autotune are turned to
    the package's core.

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
            if module in DEFINITION_MODULES:
                offered = {name for names in _words().values() for name in names}
                unknown = [alias.name for alias in node.names if module == "autotune" and alias.name not in offered]
                if unknown:
                    raise _refused(path, node, f"from autotune import {', '.join(unknown)}")
                line = lines[node.lineno - 1]
                head, rest = line[: node.col_offset], line[node.col_offset :]
                lines[node.lineno - 1] = head + rest.replace("autotune", ".._core", 1)
            elif not module.startswith("._") and (node.level or not _free(module)):
                raise _refused(path, node, f"from {module} import ...")
    return "".join(lines)


def _words() -> dict[str, list[str]]:
    """autotune's public words by the core module that defines them."""
    found: dict[str, list[str]] = {module: [] for module in OFFERS}
    for name in autotune.__all__:
        module = getattr(getattr(autotune, name), "__module__", "").removeprefix("autotune.")
        if module in found:
            found[module].append(name)
    return found


def _free(module: str) -> bool:
    top = module.partition(".")[0]
    return top == "numpy" or top in sys.stdlib_module_names


def _refused(path: Path, node: ast.stmt, statement: str) -> UsageError:
    words = sorted(name for names in _words().values() for name in names)
    return UsageError(
        f"{path}:{node.lineno}: `{statement}` cannot be emitted: a definition may import NumPy, the standard library, "
        "parts beside it (`from ._name import ...`) and, as `from autotune import ...`, its public words "
        f"({', '.join(words)})"
    )
