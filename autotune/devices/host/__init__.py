"""The host device: a variant's own source, compiled as C++ and run on the CPU, with every access checked.

It proves index arithmetic, edges and synchronisation where there is no GPU, in two builds: ``check`` stops at the
first out-of-bounds access, race, unwritten shared memory, divergent barrier or undefined operation and names its
template line; ``plain`` runs faster and varies the schedule with the seed. Its times are CPU times. They say nothing
of a GPU.
"""

from collections.abc import Sequence

from ...definition import Device
from ...errors import UsageError
from ...render import Variant
from ..base import Binary, Finding, Session
from .build import BUILD_FLAGS, compile_variant, flags, package_fingerprint
from .session import HostSession
from .toolchain import REMEDY, find_compiler

kind = "host"
clock = "host time"
DEVICE = Device(name="host", kind="host", arch="host", max_shared_bytes=227 * 1024)


def identifiers() -> list[str]:
    """``host``, where there is a compiler."""
    try:
        find_compiler()
    except UsageError:
        return []
    return ["host"]


def describe(identifier: str) -> Device:
    return DEVICE


def lock_name(identifier: str) -> str:
    return "host"


def compiler(device: Device) -> str:
    options = "; ".join(f"{build}: {' '.join(flags(build))}" for build in BUILD_FLAGS)
    return f"{find_compiler().version}, shim {package_fingerprint()}, {options}"


def compile(variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
    return compile_variant(variant, device, builds)


def open(identifier: str) -> Session:
    return HostSession(describe(identifier))


def findings() -> list[Finding]:
    """Whether there is a compiler, for ``autotune doctor``."""
    try:
        found = find_compiler()
    except UsageError as error:
        return [Finding("host compiler", False, str(error), REMEDY)]
    return [Finding("host compiler", True, f"{found.version} ({' '.join(found.command)})")]
