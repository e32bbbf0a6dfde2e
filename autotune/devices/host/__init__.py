"""The host device compiles a variant's source as C++ and runs it on the CPU, with a check of every access.

It proves index arithmetic, edges and synchronisation without a GPU, in two builds. ``check`` stops at the first
out-of-bounds access, race, read of unwritten shared memory, divergent barrier or undefined operation, and names the
template's line. ``plain`` runs faster, and varies the schedule with the seed. Times are CPU times, and say nothing
about a GPU.
"""

from ...core.definition import Device
from ...core.errors import UsageError
from ...rendering.render import Variant
from ..base import Defaults, Finding, Session
from .build import BUILD_FLAGS, compile_variant, flags, package_fingerprint
from .session import HostSession
from .toolchain import REMEDY, find_compiler

kind = "host"
clock = "host time"
builds = ("check", "plain")
defaults = Defaults(
    trials=64,  # a CPU takes about a second per trial
    checked_launches=16,  # the check build finds races; these launches find binaries that count launches
    most_placements=1,
    has_full_sizes=False,
    most_bytes=1 << 27,  # a launch then takes up to half a second, and a trial needs a hundred launches
    trial_s=(2.0, 0.3),
    caches=(kind,),
)
compile = compile_variant
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
        UsageError: if there is no compiler; the message says what to install.
    """
    options = "; ".join(f"{build}: {' '.join(flags(build))}" for build in BUILD_FLAGS)
    return f"{find_compiler().version}, shim {package_fingerprint()}, {options}"


def compiled_anew(variant: Variant, device: Device) -> str:
    """Returns the same digest again: it covers the source text without comments, not the compiler's output."""
    return compile_variant(variant, device).code


def open(identifier: str) -> Session:
    """Opens the host in the worker process; a kernel that crashes ends this process."""
    return HostSession(describe(identifier))


def findings() -> list[Finding]:
    """Reports the compiler for ``autotune doctor``."""
    try:
        host_compiler = find_compiler()
    except UsageError as error:
        return [Finding("host compiler", False, str(error), REMEDY)]
    return [Finding("host compiler", True, f"{host_compiler.version} ({' '.join(host_compiler.command)})")]
