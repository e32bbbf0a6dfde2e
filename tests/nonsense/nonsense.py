"""A device of another package that returns nonsense: the simulated one, but for what the variable NONSENSE says.

``NONSENSE=registers=-1``: what (a field of Binary, of a sample, or a function) = what it is instead.
"""

import os
import time
from dataclasses import replace
from typing import Any

from autotune.core.device import Ceilings
from autotune.devices import simulated
from autotune.devices.base import Sample
from autotune.devices.simulated import *  # noqa: F403  (a device is a module)

kind = "nonsense"
WHAT, _, TEXT = os.environ.get("NONSENSE", "nothing=none").partition("=")
VALUES: dict[str, Any] = {
    "-1": -1,
    "word": "many",
    "half": 1.5,
    "none": None,
    "nan": float("nan"),
    "inf": float("inf"),
    "huge": 10**40,
    "list": [1],
    "object": object,
    "escape": "a\x1b[2J",
    "yes": True,
}


def nonsense(right: Any) -> Any:
    """Returns the value in place of ``right``, or raises, or never returns."""
    if TEXT == "raises":
        raise RuntimeError("nonsense")
    if TEXT == "hangs":
        time.sleep(1000)
    return VALUES.get(TEXT, right)


def identifiers() -> list[str]:
    return ["nonsense:0"]


def describe(identifier: str) -> Any:
    return replace(simulated.describe(identifier), name="nonsense", kind=kind)


def compile(variant: Any, device: Any, builds: Any = None) -> Any:
    made = simulated.compile(variant, device, builds)
    if WHAT == "compile":
        return nonsense(made)
    return replace(made, **{WHAT: nonsense(None)}) if hasattr(made, WHAT) else made


class _Function(simulated._Function):
    def launch(self, launch: Any, arguments: Any, *, seed: int = 0) -> None:
        if WHAT == "launch":
            nonsense(None)

    def samples(self, launch: Any, arguments: Any, n: int, *, cold: bool) -> Any:
        made = super().samples(launch, arguments, n, cold=cold)
        if WHAT == "samples":
            return nonsense(made)
        if WHAT in ("seconds", "clock_hz"):
            return [replace(sample, **{WHAT: nonsense(None)}) for sample in made]
        return [Sample(nonsense(0.0)) for _ in made[1:]] if WHAT == "fewer" else made


class _Session(simulated._Session):
    def load(self, binary: Any, build: str) -> Any:
        return _Function(binary.files[build])

    def ceilings(self) -> Any:
        if WHAT == "ceilings":
            return nonsense(None)
        return Ceilings(nonsense(1.0), 1e12) if WHAT == "bytes_per_s" else simulated.CEILINGS


def open(identifier: str) -> Any:
    return _Session(describe(identifier))
