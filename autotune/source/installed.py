"""Kernels, devices, samplers, export formats and formats of files that installed packages add through entry points.

An entry point is code that the user of this Python has installed, and is trusted as such. A name, also one that a
record gives, is looked up among those that are registered; nothing is imported by the name alone.
"""

from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..core.errors import UsageError, error_text

KERNELS = "autotune.kernels"  # each entry point names a module that defines one kernel
DEVICES = "autotune.devices"  # ... a module that has what DeviceModule lists; it is called as the module's kind
SAMPLERS = (
    "autotune.samplers"  # ... a class, module:Class, that extends search.sampler.ListSampler or a sampler of Optuna's
)
EXPORTS = "autotune.exports"  # ... a module that has what records.export.exporter.Format lists
FORMATS = "autotune.formats"  # ... a module that has what engines.files.formats.base.Format lists; called as its suffix


@lru_cache(maxsize=8)
def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name. To look for them takes as long as a trial."""
    return {point.name: point for point in entry_points(group=group)}


def load_installed(group: str, name: str, interface: type) -> Any:
    """The module or class that is registered as ``name``, which must be there; ``interface`` lists what it must have.

    Raises:
        UsageError: when it cannot be imported, or lacks a part of the interface.
    """
    point = installed(group)[name]
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
    try:
        found = point.load()
    except Exception as error:  # it is somebody else's module, and may raise anything
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
    """The public attributes and methods of a Protocol."""
    names = {*vars(interface), *vars(interface).get("__annotations__", ())}
    return {name for name in names if not name.startswith("_")}
