"""Drivers: one module for each kind of device, with the interface in ``base``. ``auto`` is the first usable device.

Installed packages add kinds by entry points of the group ``autotune.devices``; ``auto`` never chooses these.

A driver describes, compiles, loads and launches; it does not verify or measure. The room imports ``records`` and the
rooms below it.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from ..core.definition import Device
from ..core.errors import UsageError
from ..source.installed import DEVICES, installed, load_installed
from .base import DeviceModule, Finding

MODULES = ("cuda", "host")  # kinds of device, in the order in which ``auto`` tries them
ON_REQUEST = ("simulated",)  # kinds that are used only by name


@dataclass(frozen=True)
class Target:
    """A usable device: its kind, its name within the kind, and its limits."""

    kind: str
    identifier: str
    device: Device

    @property
    def module(self) -> DeviceModule:
        return device_module(self.kind)


def device_module(kind: str) -> DeviceModule:
    """Returns the module of one kind of device, which is imported on first use.

    Raises:
        UsageError: for an unknown kind; a record may name anything.
    """
    if kind in (*MODULES, *ON_REQUEST):
        return cast(DeviceModule, import_module(f"{__name__}.{kind}"))
    if kind not in installed(DEVICES):
        raise UsageError(f"{kind!r} is not a kind of device (there are: {', '.join(kinds())})")
    module = cast(DeviceModule, load_installed(DEVICES, kind, DeviceModule))
    if module.kind != kind:
        raise UsageError(
            f"the device {kind!r} of {DEVICES} calls itself {module.kind!r}: its entry point must be called so"
        )
    return module


def kinds() -> tuple[str, ...]:
    """Returns all kinds of device by name; those of installed packages come last."""
    own = (*MODULES, *ON_REQUEST)
    return (*own, *(kind for kind in installed(DEVICES) if kind not in own))


def findings() -> list[Finding]:
    """Returns the findings of each kind of device, what works and what is missing, for ``autotune doctor``."""
    found: list[Finding] = []
    for kind in kinds():
        try:
            found += device_module(kind).findings()
        except UsageError as error:  # the module of an installed package fails
            found.append(Finding(f"device {kind}", False, str(error), "mend or remove the package"))
    return found


def find_device(name: str = "auto") -> Target:
    """Returns the device called ``name``: ``auto``, ``host``, ``cuda``, ``cuda:1``, or a device of another package.

    Raises:
        UsageError: if there is no such device here; the message lists the usable ones.
    """
    usable: list[str] = []
    asked_kind = name.partition(":")[0]
    own = (*MODULES, *ON_REQUEST)
    others = [asked_kind] if asked_kind not in (*own, "auto") and asked_kind in installed(DEVICES) else []
    for kind in sorted((*own, *others), key=lambda kind: kind != asked_kind):  # the named kind first: it may suffice
        module = device_module(kind)
        identifiers = module.identifiers()
        usable += identifiers if kind in MODULES else []
        for identifier in identifiers:
            if name in (kind, identifier) or (name == "auto" and kind in MODULES):
                return Target(kind, identifier, module.describe(identifier))
    asked = [kind for kind in kinds() if kind == asked_kind or (name == "auto" and kind in MODULES)]
    missing = [f"{f.what}: {f.detail}" for kind in asked for f in device_module(kind).findings() if not f.works]
    why = "".join(f". {text}" for text in missing)
    raise UsageError(f"device {name!r} is not here; usable: {', '.join(usable) or 'none'}{why} (see `autotune doctor`)")
