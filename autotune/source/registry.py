"""Finds kernels: of autotune itself, of installed packages, and in a user's file.

A definition is a file, ``detect.py``, or a package whose module of the same name defines the kernel, ``ddc/ddc.py``.
"""

import importlib
import importlib.util
import os
import pkgutil
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from ..core.definition import Kernel, kernel_classes
from ..core.errors import UsageError
from ..core.problem import Problem
from .emitted import emitted_parent
from .installed import KERNELS, installed

OWN = "autotune.kernels"  # a string, since definitions import autotune: they are found like those of other packages
VERSION = re.compile(r"(?<=\.py)#[0-9a-f]{12}$")
SOURCES = (".cu", ".cuh")  # suffixes of CUDA sources, which have no definition


class SourceAsItIs(SourceFileLoader):
    """Compiles a file each time that it is imported.

    Python's cache of bytecode takes a file for unchanged if its size and the second of its last change are, so that a
    definition that is edited soon after a sweep would run as it was before, and be recorded as it is.
    """

    def path_stats(self, path: str) -> NoReturn:
        raise OSError(f"no bytecode of {path} is kept")


def all_kernels() -> dict[str, Kernel[Problem]]:
    """Returns name -> kernel, for all kernels that have a name."""
    return {name: load_kernel(name) for name in sorted(_modules())}


@lru_cache(maxsize=64)
def load_kernel(reference: str) -> Kernel[Problem]:
    """Returns the kernel with a name, or with the path of a definition: a file, or the folder of a package.

    It is read once for each reference; ``versioned_reference`` adds a digest that another text does not have.

    Raises:
        UsageError: when there is no such kernel, or the file does not define exactly one.
    """
    reference = VERSION.sub("", reference)
    if reference.endswith(".py") or ("/" in reference and not reference.endswith(SOURCES)):
        return _only_kernel(_import_file(Path(reference)))
    modules = _modules()
    if reference not in modules:
        if reference.endswith(SOURCES):
            raise UsageError(
                f"{reference} is a source, and a kernel is named by its definition, x.py: `autotune tune {reference} "
                "..` tunes a source as it is, and writes such a definition"
            )
        known = ", ".join(sorted(modules)) or "none"
        raise UsageError(f"no kernel is called {reference!r} (there are: {known}); a file is named by its path, x.py")
    return _only_kernel(importlib.import_module(modules[reference]))


def named_kernels(references: Iterable[str | Path]) -> dict[str, Kernel[Problem]]:
    """Returns name -> kernel, for kernels that a user names or gives by path.

    Raises:
        UsageError: when one does not exist, or two have the same name.
    """
    found: dict[str, Kernel[Problem]] = {}
    for kernel in (load_kernel(str(reference)) for reference in references):
        other = found.setdefault(kernel.name, kernel)
        if other.source_path != kernel.source_path:
            raise UsageError(
                f"{other.source_path} and {kernel.source_path} both define {kernel.name}; name one of them"
            )
    return found


def recorded_kernel(about: Mapping[str, Any], named: Mapping[str, Kernel[Problem]]) -> Kernel[Problem]:
    """Returns the definition for the sweep.json ``about``: one of ``named``, or else an installed one.

    The file that a record names is only shown to people: a record is data, and its author must not choose code to run.

    Raises:
        UsageError: when there is neither; the message says which file the record was made with, and how to name it.
    """
    name, made_with = about["kernel"], about.get("definition", "")
    if name in named:
        return named[name]
    if name in _modules() and made_with in ("", name):
        kernel = load_kernel(name)
        if kernel.name == name:
            return kernel
    if made_with in ("", name):
        raise UsageError(f"{name} is not installed here: give the path of its definition, --kernel PATH")
    raise UsageError(
        f"{name} was recorded with the definition {made_with}, and a record alone decides on no code that runs here: "
        f"give --kernel {shlex.quote(made_with)} if you trust that file"
    )


@lru_cache(maxsize=64)
def kernel_reference(kernel: Kernel[Problem]) -> str:
    """Returns a reference by which ``load_kernel`` finds the same kernel, also in another process."""
    modules = _modules()
    module = modules.get(kernel.name, "")
    if type(kernel).__module__ in (module, f"{module}.{kernel.name}"):
        return kernel.name
    return str(kernel.source_path.resolve())


def versioned_reference(kernel: Kernel[Any]) -> str:
    """Returns a reference for processes that may have loaded the kernel before its file changed."""
    reference = kernel_reference(kernel)
    if reference == kernel.name:
        return reference
    return f"{reference}#{sha256(kernel.source_path.read_bytes()).hexdigest()[:12]}"


def _modules() -> dict[str, str]:
    """Returns kernel name -> module name; autotune's own kernels win over others of the same name."""
    kernels = importlib.import_module(OWN)
    found = {name: point.value for name, point in installed(KERNELS).items()}
    own = {module.name: f"{kernels.__name__}.{module.name}" for module in pkgutil.iter_modules(kernels.__path__)}
    return {**found, **own}


def _import_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if path.is_dir():
        path = path / f"{path.name}.py"
    if not path.is_file():
        raise UsageError(f"{path} does not exist: --kernel takes a kernel's name or the path of its definition")
    name = f"{emitted_parent(path) or _parent_of(path)}.{path.stem}"
    loader = SourceAsItIs(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a user's file may raise anything; the message must name the file
        raise UsageError(f"{path} does not import: {type(error).__name__}: {error}") from error
    return module


def _parent_of(path: Path) -> str:
    """Returns the name of the package of a definition, from which it can import the files beside it."""
    package = ModuleType(f"autotune_user_{sha256(os.fsencode(path.parent)).hexdigest()[:8]}")  # stems may be equal
    package.__path__ = [str(path.parent)]
    sys.path_importer_cache[str(path.parent)] = FileFinder(
        str(path.parent), (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceAsItIs, SOURCE_SUFFIXES)
    )
    sys.modules.setdefault(package.__name__, package)
    return package.__name__


def _only_kernel(module: ModuleType) -> Kernel[Problem]:
    module, found = kernel_classes(module)
    if len(found) != 1:
        raise UsageError(f"{module.__file__} defines {len(found)} kernels; a definition file holds exactly one")
    try:
        return found[0]()
    except TypeError as error:
        raise UsageError(f"{module.__file__}: {error}") from error
