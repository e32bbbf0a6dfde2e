"""NVIDIA GPUs: NVRTC compiles to a cubin, without a GPU; CuPy launches it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.architecture import ARCHITECTURES
from ...core.definition import Device
from ...core.errors import UsageError
from ...rendering.render import Variant
from ...runtime import gpu, nvrtc
from ...runtime.cubin import check_constants, constant_bytes
from ...system.cache import cache_dir
from ...system.installation import install_with
from .. import machine_code
from ..base import Binary, Defaults, Finding

if TYPE_CHECKING:
    from .session import CudaSession

kind = "cuda"
clock = "GPU time"
builds = ("cubin",)
defaults = Defaults(start_s=6.0, trial_s=(0.6, 0.03), caches=("cubin",))


def identifiers() -> list[str]:
    """Returns ``cuda:0``, ``cuda:1``, ...; an empty list without CuPy or a driver."""
    try:
        import cupy

        return [f"cuda:{i}" for i in range(cupy.cuda.runtime.getDeviceCount())]
    except ImportError:
        return []
    except Exception as error:  # CuPy's error type can be imported only if CuPy is installed
        if type(error).__name__ == "CUDARuntimeError":  # there is no driver, or it is too old
            return []
        raise


def describe(identifier: str) -> Device:
    """Reads name and limits from the driver without creating a context."""
    return gpu.describe_gpu(_index(identifier))


def of_architecture(arch: str) -> Device:
    """Returns a device for compiling and enumerating, without such a GPU.

    Raises:
        UsageError: for an unknown architecture.
    """
    if arch not in ARCHITECTURES:
        raise UsageError(f"{arch!r} is not a known architecture (known: {', '.join(ARCHITECTURES)})")
    return Device(name=arch, kind=kind, arch=arch, max_shared_bytes=ARCHITECTURES[arch].shared_bytes)


def lock_name(identifier: str) -> str:
    """Returns a name made of the PCI bus address, which is independent of CUDA_VISIBLE_DEVICES."""
    from cupy.cuda import runtime

    return "cuda-" + str(runtime.deviceGetPCIBusId(_index(identifier))).replace(":", "-")


def compiler(device: Device) -> str:
    """Returns NVRTC's version, the architecture and the options."""
    if (reason := nvrtc.available()) is not None:
        raise UsageError(f"NVRTC cannot be used: {reason}")
    return nvrtc.described(device.arch)


def compile(variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
    """Compiles to a cubin in the cache, or finds it there."""
    cubin = nvrtc.cached_cubin(cache_dir("cubin"), variant.numbered, variant.kernel, device.arch, also=variant.also)
    assert cubin.path is not None  # it was cached
    if variant.constants:
        check_constants(variant.kernel, dict(variant.constants), constant_bytes(cubin.data))
    return Binary(
        variant=variant.name,
        kernel=variant.kernel,
        key=cubin.key,
        code=_code(cubin),
        files={"cubin": cubin.path},
        registers=cubin.registers,
        spill_bytes=cubin.spill_bytes,
        shared_bytes=cubin.shared_bytes,
        compile_s=cubin.compile_s,
        cached=cubin.cached,
        log=cubin.log,
        also=cubin.also,
        symbols=cubin.symbols,
    )


def compiled_anew(variant: Variant, device: Device) -> str:
    """Returns the digest of the machine code that NVRTC makes this time."""
    return _code(nvrtc.compile_cubin(variant.numbered, variant.kernel, device.arch, nvrtc.OPTIONS, variant.also))


def _code(cubin: nvrtc.Cubin) -> str:
    others = ((f.registers, f.spill_bytes, f.shared_bytes) for f in cubin.also.values())
    return machine_code.of_cubin(cubin.data, cubin.registers, cubin.spill_bytes, cubin.shared_bytes, *others)


def open(identifier: str) -> "CudaSession":
    """Opens the GPU in the worker process."""
    from .session import CudaSession

    return CudaSession(_index(identifier), describe(identifier))


def findings() -> list[Finding]:
    """Reports on GPUs and NVRTC for ``autotune doctor``."""
    numbers = identifiers()
    gpus = ", ".join(f"{i} {describe(i).name}" for i in numbers)
    reason = nvrtc.available()
    extra = f"{install_with('cuda13')} (or cuda12, after the CUDA version of the driver)"
    return [
        Finding(
            "GPU", bool(numbers), gpus or "none found through CuPy", f"a driver, and {extra}; without, host is used"
        ),
        Finding("NVRTC", reason is None, nvrtc.version() if reason is None else reason, extra),
    ]


def _index(identifier: str) -> int:
    return int(identifier.partition(":")[2] or 0)
