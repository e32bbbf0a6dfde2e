"""Recorded sweeps for other programs, one module for each format: CSV, Parquet, T4 results, Kernel Tuner's cache files.

Installed packages add formats by entry points of the group ``autotune.exports``.
"""

from importlib import import_module
from typing import cast

from ...core.errors import UsageError
from ...source.installed import EXPORTS, installed, load_installed
from .exporter import ExportFormat

MODULES = {"csv": "csv", "parquet": "parquet", "t4": "t4", "kernel-tuner": "kernel_tuner"}


def formats() -> tuple[str, ...]:
    """The names of all formats, those of installed packages last."""
    return tuple(dict.fromkeys((*MODULES, *installed(EXPORTS))))


def format_module(name: str) -> ExportFormat:
    """The module of one format, imported when first asked for.

    Raises:
        UsageError: for a format that there is not.
    """
    if name in MODULES:
        return cast(ExportFormat, import_module(f"{__name__}.{MODULES[name]}"))
    if name not in installed(EXPORTS):
        raise UsageError(f"no export format is called {name!r} (there are: {', '.join(formats())})")
    return cast(ExportFormat, load_installed(EXPORTS, name, ExportFormat))
