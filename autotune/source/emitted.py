"""Definitions in emitted packages: they import the package's copy of ``core``, and here get this one in its place.

So an installed autotune can tune a package's own definition, without running the rest of the package.
"""

import pkgutil
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType

from .. import core

COPIES, DEFINITIONS = "_autotune", "kernels"  # folders of an emitted package


def emitted_parent(path: Path) -> str | None:
    """Returns the name of the package in which to import the definition ``path``; None if it is not an emitted one."""
    root = next((folder for folder in path.parents[1:3] if (folder / COPIES / "core").is_dir()), None)
    parts = path.relative_to(root).parts[:-1] if root else ()
    if root is None or parts[0] != DEFINITIONS:
        return None
    name, folder = f"autotune_emitted_{sha256(str(root).encode()).hexdigest()[:8]}", root
    for module in (core.__name__, *(f.name for f in pkgutil.walk_packages(core.__path__, f"{core.__name__}."))):
        sys.modules[f"{name}.{COPIES}.core{module.removeprefix(core.__name__)}"] = import_module(module)
    for part in parts:
        name, folder = f"{name}.{part}", folder / part
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules.setdefault(name, package)
    return name
