"""Exports recorded sweeps for other programs: CSV, Parquet, T4 results, Kernel Tuner cache files; a module for each.

Installed packages add formats with entry points in the group ``autotune.exports``.
"""

from importlib import import_module
from typing import cast

from ...core.errors import UsageError
from ...source.installed import EXPORTS, installed, load_installed
from .exporter import ExportFormat

MODULES = {"csv": "csv", "parquet": "parquet", "t4": "t4", "kernel-tuner": "kernel_tuner"}


def formats() -> tuple[str, ...]:
    """Returns the names of all formats, those of installed packages last."""
    return tuple(dict.fromkeys((*MODULES, *installed(EXPORTS))))


def format_module(name: str) -> ExportFormat:
    """Returns the module of one format, which is imported on first use.

    Raises:
        UsageError: for an unknown format.
    """
    if name in MODULES:
        return cast(ExportFormat, import_module(f"{__name__}.{MODULES[name]}"))
    if name not in installed(EXPORTS):
        raise UsageError(f"no export format is called {name!r} (there are: {', '.join(formats())})")
    return cast(ExportFormat, load_installed(EXPORTS, name, ExportFormat))
