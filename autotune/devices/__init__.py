"""Drivers: one module for each kind of device, behind the interface of ``base``; the first that is here is ``auto``.

Installed packages add kinds by entry points of the group ``autotune.devices``. Those are used by name only.

They describe, compile, load and launch; they verify and measure nothing. The room imports ``records`` and
the rooms below it.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from ..core.definition import Device
from ..core.errors import UsageError
from ..source.installed import DEVICES, installed, load_installed
from .base import DeviceModule, Finding

MODULES = ("cuda", "host")  # kinds of device, in the order in which ``auto`` tries them
ON_REQUEST = ("simulated",)  # used only if named


@dataclass(frozen=True)
class Target:
    """A usable device: its module, its name there, and its limits."""

    kind: str
    identifier: str
    device: Device

    @property
    def module(self) -> DeviceModule:
        return device_module(self.kind)


def device_module(kind: str) -> DeviceModule:
    """Returns the module of one kind of device, which is imported when first needed.

    Raises:
        UsageError: for a kind that there is not; a record may name anything.
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
    """All kinds of device that can be named, those of installed packages last."""
    own = (*MODULES, *ON_REQUEST)
    return (*own, *(kind for kind in installed(DEVICES) if kind not in own))


def findings() -> list[Finding]:
    """Returns what works here of each kind of device, and what does not, for ``autotune doctor``."""
    found: list[Finding] = []
    for kind in kinds():
        try:
            found += device_module(kind).findings()
        except UsageError as error:  # an installed package's
            found.append(Finding(f"device {kind}", False, str(error), "mend or remove the package"))
    return found


def find_device(name: str = "auto") -> Target:
    """Returns the device called ``name``: ``auto``, ``host``, ``cuda``, ``cuda:1``, or one of an installed package's.

    Raises:
        UsageError: when it is not here; says what is.
    """
    usable: list[str] = []
    asked_kind = name.partition(":")[0]
    own = (*MODULES, *ON_REQUEST)
    others = [asked_kind] if asked_kind not in (*own, "auto") and asked_kind in installed(DEVICES) else []
    for kind in sorted((*own, *others), key=lambda kind: kind != asked_kind):  # no other need be looked for, maybe
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
