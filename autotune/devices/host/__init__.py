"""The host device compiles a variant's source as C++ and runs it on the CPU, with every access checked.

It proves index arithmetic, edges and synchronisation where there is no GPU, in two builds: ``check`` stops at the
first out-of-bounds access, race, unwritten shared memory, divergent barrier or undefined operation and names its
template line; ``plain`` runs faster and varies the schedule with the seed. Its times are CPU times. They say nothing
of a GPU.
"""

from collections.abc import Sequence

from ...core.definition import Device
from ...core.errors import UsageError
from ...rendering.render import Variant
from ..base import Binary, Defaults, Finding, Session
from .build import BUILD_FLAGS, compile_variant, flags, package_fingerprint
from .session import HostSession
from .toolchain import REMEDY, find_compiler

kind = "host"
clock = "host time"
builds = ("check", "plain")
defaults = Defaults(
    trials=64,  # a CPU takes about a second a trial
    checked_launches=16,  # it looks for races itself: what is left are binaries that count launches
    most_placements=1,
    has_full_sizes=False,
    most_bytes=1 << 27,  # a launch takes up to half a second, and a trial a hundred of them
    trial_s=(2.0, 0.3),
    caches=(kind,),
)
DEVICE = Device(name="host", kind="host", arch="host", max_shared_bytes=227 * 1024)


def identifiers() -> list[str]:
    """Returns ``host`` if there is a compiler."""
    try:
        find_compiler()
    except UsageError:
        return []
    return ["host"]


def describe(identifier: str) -> Device:
    """Returns CUDA's usual limits, since a CPU sets none."""
    return DEVICE


def lock_name(identifier: str) -> str:
    """Returns a constant, since there is one host."""
    return "host"


def compiler(device: Device) -> str:
    """Returns the compiler, the hash of shim and runtime, and the options of each build.

    Raises:
        UsageError: when there is no compiler; says what to install.
    """
    options = "; ".join(f"{build}: {' '.join(flags(build))}" for build in BUILD_FLAGS)
    return f"{find_compiler().version}, shim {package_fingerprint()}, {options}"


def compile(variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
    """Compiles ``variant``, or finds it in the cache: both builds, or those named.

    Raises:
        TrialFailure: compile_failed with the template's lines, resources, or skipped where it needs a GPU.
        UsageError: when there is no compiler.
    """
    return compile_variant(variant, device, builds)


def compiled_anew(variant: Variant, device: Device) -> str:
    """Returns the same digest again, since it covers the text without comments."""
    return compile(variant, device).code


def open(identifier: str) -> Session:
    """Opens the host in the worker process, which a crashing kernel ends."""
    return HostSession(describe(identifier))


def findings() -> list[Finding]:
    """Reports the compiler for ``autotune doctor``."""
    try:
        found = find_compiler()
    except UsageError as error:
        return [Finding("host compiler", False, str(error), REMEDY)]
    return [Finding("host compiler", True, f"{found.version} ({' '.join(found.command)})")]
