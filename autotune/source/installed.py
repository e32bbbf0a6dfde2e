"""Finds kernels, devices, samplers, export formats and file formats that installed packages add by entry points.

An entry point is code that the user has installed in this Python, so it is trusted. A name, which may come from a
record, is looked up among the registered ones; a name alone never causes an import.
"""

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..core.errors import UsageError, error_text

KERNELS = "autotune.kernels"  # each entry point names a module that defines one kernel
DEVICES = "autotune.devices"  # ... a module with the members of DeviceModule; its name is the module's kind
SAMPLERS = (
    "autotune.samplers"  # ... a class, module:Class, that extends search.sampler.ListSampler or an Optuna sampler
)
EXPORTS = "autotune.exports"  # ... a module with the members of records.export.exporter.ExportFormat
FORMATS = "autotune.formats"  # ... a module with the members of a file format; its name is the suffix


@lru_cache(maxsize=8)
def installed(group: str) -> dict[str, EntryPoint]:
    """Returns name -> entry point of a group. The search takes as long as a trial."""
    return {point.name: point for point in entry_points(group=group)}


def load_installed(group: str, name: str, interface: type) -> Any:
    """Returns the module or class registered as ``name``, which must exist; ``interface`` lists its required members.

    Raises:
        UsageError: when it cannot be imported, or lacks a member of the interface.
    """
    point = installed(group)[name]
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
    try:
        found = point.load()
    except Exception as error:  # a foreign module may raise anything
        raise UsageError(
            f"{name!r} of {group} does not load: {point.value} of {package}: {error_text(error)}; mend or remove the "
            "package"
        ) from error
    missing = sorted(member for member in _members(interface) if not hasattr(found, member))
    if missing:
        raise UsageError(
            f"{name!r} of {group} cannot be used: {point.value} of {package} lacks {', '.join(missing)}, "
            f"which {interface.__module__}.{interface.__name__} lists"
        )
    return found


def _members(interface: type) -> set[str]:
    """Returns the names of the public attributes and methods of a Protocol."""
    names = {*vars(interface), *vars(interface).get("__annotations__", ())}
    return {name for name in names if not name.startswith("_")}
