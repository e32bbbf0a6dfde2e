"""Drivers: one module for each kind of device, behind the interface of ``base``; the first that is here is ``auto``.

They describe, compile, load and launch; they verify and measure nothing. The room imports ``system``, ``source``,
``runtime`` and ``core``.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from ..core.definition import Device
from ..core.errors import UsageError
from .base import DeviceModule

MODULES = ("cuda", "host")  # in the order in which ``auto`` asks them
ON_REQUEST = ("simulated",)  # by name only


@dataclass(frozen=True)
class Target:
    """A device that can be used: its module, its name there, and what it is."""

    kind: str
    identifier: str
    device: Device

    @property
    def module(self) -> DeviceModule:
        return device_module(self.kind)


def device_module(kind: str) -> DeviceModule:
    """The module of one kind of device, imported when first asked for.

    Raises:
        UsageError: for a kind that there is not; a record may name anything.
    """
    if kind not in (*MODULES, *ON_REQUEST):
        raise UsageError(f"{kind!r} is no kind of device (there are: {', '.join((*MODULES, *ON_REQUEST))})")
    return cast(DeviceModule, import_module(f"{__name__}.{kind}"))


def find_device(name: str = "auto") -> Target:
    """The device called ``name``: ``auto``, ``host``, ``cuda`` or ``cuda:1``.

    Raises:
        UsageError: when it is not here; says what is.
    """
    usable: list[str] = []
    for kind in (*MODULES, *ON_REQUEST):
        module = device_module(kind)
        identifiers = module.identifiers()
        usable += identifiers if kind in MODULES else []
        for identifier in identifiers:
            if name in (kind, identifier) or (name == "auto" and kind in MODULES):
                return Target(kind, identifier, module.describe(identifier))
    asked = [kind for kind in MODULES if name in ("auto", kind) or name.startswith(f"{kind}:")]
    missing = [f"{f.what}: {f.detail}" for kind in asked for f in device_module(kind).findings() if not f.works]
    why = "".join(f". {text}" for text in missing)
    raise UsageError(f"device {name!r} is not here; usable: {', '.join(usable) or 'none'}{why} (see `autotune doctor`)")
