"""Access to the GPU for emitted packages: limits, binaries, streams. CuPy is imported on first use."""

import atexit
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.definition import Device
from ..core.errors import TrialFailure, UsageError
from ..core.kept import make_folder
from . import nvrtc
from .signature import ArgumentTypeError

DRIVER = Path("/proc/driver/nvidia/version")
MPS = "/tmp/nvidia-mps"  # the daemon's folder, unless the environment names another
CLOCK_RATE = 13  # cudaDevAttrClockRate, in kHz; CUDA 13 no longer has the property of that name


def current() -> int:
    """Returns the index of CuPy's current GPU.

    Raises:
        UsageError: when CuPy can use no GPU; the message says why.
    """
    try:
        import cupy
    except ImportError as error:
        raise UsageError(f'CuPy is missing ({error}): pip install "cupy-cuda13x>=14", or cupy-cuda12x') from error
    try:
        return int(cupy.cuda.runtime.getDevice())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UsageError(f"CuPy finds no usable GPU ({error})") from None


def current_getter() -> Callable[[], int]:
    """Returns a fast version of ``current`` without its error messages, for each launch."""
    import cupy

    return cupy.cuda.runtime.getDevice  # type: ignore[no-any-return]


def made_current(index: int) -> Any:
    """Returns a context in which the GPU ``index`` is the current one."""
    import cupy

    return cupy.cuda.Device(index)


@lru_cache(maxsize=64)
def describe_gpu(index: int) -> Device:
    """Returns the name and the limits of the GPU ``index``."""
    from cupy.cuda import runtime

    p = runtime.getDeviceProperties(index)
    return Device(
        name=p["name"].decode(),
        kind="cuda",
        arch=f"sm_{p['major']}{p['minor']}",
        max_threads_per_block=p["maxThreadsPerBlock"],
        max_block=tuple(p["maxThreadsDim"]),
        max_grid=tuple(p["maxGridSize"]),
        max_shared_bytes=p["sharedMemPerBlockOptin"],
        registers_per_block=p["regsPerBlock"],
        n_multiprocessors=p["multiProcessorCount"],
        l2_bytes=p["l2CacheSize"],
        max_clock_hz=1e3 * float(p.get("clockRate") or runtime.deviceGetAttribute(CLOCK_RATE, index)),
    )


def free_bytes(index: int) -> int:
    """Returns the bytes of memory of the GPU ``index`` that no process uses."""
    import cupy

    with cupy.cuda.Device(index):
        return int(cupy.cuda.runtime.memGetInfo()[0])


@lru_cache(maxsize=1)
def driver() -> str:
    """Returns the version of the driver, such as ``580.82.07``; where the system does not tell it, that of its CUDA."""
    with suppress(OSError):
        if found := re.search(r"Module\s+(?:for \S+\s+)?([\d.]+)\s", DRIVER.read_text()):
            return found[1]
    from cupy.cuda import runtime

    return f"CUDA {runtime.driverGetVersion()}"


def shares_faults() -> str | None:
    """Returns why a fault of another process may end this one's work on the GPU, or None."""
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or MPS)
    if (folder / "control").exists():
        return f"a CUDA MPS daemon runs (in {folder}), so a fault of a candidate could end other processes' work"
    return None


def is_capturing(stream: Any) -> bool:
    """Returns whether a CuPy stream records a graph, or may not be asked because another one does."""
    from cupy.cuda import runtime

    try:
        return bool(runtime.streamIsCapturing(stream.ptr))
    except runtime.CUDARuntimeError:  # the default stream, while a stream that waits for it records
        return True


def cubin_of(source: str, name: str, arch: str, also: Sequence[str] = ()) -> nvrtc.Cubin:
    """Returns the cubin file of a kernel and the functions ``also`` from the user's cache; compiles it if necessary.

    Raises:
        UsageError: when the source does not compile, or NVRTC is missing; the message says what to install.
    """
    try:
        try:
            return nvrtc.cached_cubin(_trusted_folder(), source, name, arch, also=also)
        except OSError:  # there may be no home, space or permission; a folder of this process also works
            return nvrtc.cached_cubin(_own_folder(), source, name, arch, also=also)
    except TrialFailure as failure:
        raise UsageError(f"{name} cannot be compiled for {arch}: {failure.message}") from failure


def load_function(cubin: nvrtc.Cubin, name: str) -> Any:
    """Loads the kernel ``name``, a name expression, on the current GPU. Returns a cupy.RawKernel."""
    import cupy

    return cupy.RawModule(path=str(cubin.path)).get_function(cubin.symbol(name))


def memory(n_bytes: int) -> Any:
    """Returns uninitialised memory on the current GPU, as a cupy.ndarray of bytes."""
    import cupy

    return cupy.empty(n_bytes, np.uint8)


def array(values: np.ndarray, index: int) -> Any:
    """Returns a copy of ``values`` on the GPU ``index``, as a cupy.ndarray."""
    import cupy

    with cupy.cuda.Device(index):
        return cupy.asarray(values)


def synchronize() -> None:
    """Waits for all work on the current GPU."""
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def constant_address(loaded: Any, name: str) -> int:
    """Returns the address of the ``__constant__`` variable ``name`` beside a cupy.RawKernel, on the current GPU."""
    return int(loaded.kernel.module.get_global_var(name))  # the module that contains this function


def copy_to(address: int, source: np.ndarray | int, n_bytes: int, stream: Any) -> None:
    """Copies bytes in stream order from a GPU address or a NumPy array, which may be changed right after the call."""
    from cupy.cuda import runtime

    if isinstance(source, int):
        runtime.memcpyAsync(address, source, n_bytes, runtime.memcpyDeviceToDevice, stream.ptr)
        return
    pageable = np.array(source, order="C")  # CUDA copies pageable memory before it returns; pinned memory, later
    runtime.memcpyAsync(address, pageable.ctypes.data, n_bytes, runtime.memcpyHostToDevice, stream.ptr)


def current_stream() -> Any:
    """Returns CuPy's current stream."""
    import cupy

    return cupy.cuda.get_current_stream()


class Order:
    """Makes launches that share memory run one after another, whatever their streams."""

    def __init__(self) -> None:
        import cupy

        self._event = cupy.cuda.Event(disable_timing=True)

    def begin(self, stream: Any) -> None:
        """Makes ``stream`` wait for earlier launches; waiting for an event that was never recorded returns at once."""
        stream.wait_event(self._event)

    def end(self, stream: object) -> None:
        self._event.record(stream)


def stream_of(stream: object, index: int) -> Any:
    """Returns a CuPy stream for one of CuPy, PyTorch or another library, or an address. None: PyTorch's current one.

    Raises:
        ArgumentTypeError: for any other type.
    """
    if stream is None:
        import torch

        stream = torch.cuda.current_stream(index)
    if hasattr(stream, "ptr"):
        return stream
    address = getattr(stream, "cuda_stream", stream)  # PyTorch's name for it
    if hasattr(address, "__cuda_stream__"):
        address = address.__cuda_stream__()[1]
    if not isinstance(address, int):
        raise ArgumentTypeError(f"stream is of type {type(stream).__name__}; it must be a CUDA stream or its address")
    return _stream_at(address, index)


@lru_cache(maxsize=256)
def _stream_at(address: int, index: int) -> Any:
    import cupy

    if address == 0:
        return cupy.cuda.Stream.null
    if not hasattr(cupy.cuda.Stream, "from_external"):  # CuPy 13
        return cupy.cuda.ExternalStream(address, index)

    class Outside:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, address)

    with cupy.cuda.Device(index):
        return cupy.cuda.Stream.from_external(Outside())


def cache_folder() -> Path:
    """Returns the cache folder of cubins, which is safe to delete. ``AUTOTUNE_CACHE_DIR`` moves it."""
    if root := os.environ.get("AUTOTUNE_CACHE_DIR"):
        return Path(root) / "cubin"
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path("~/.cache").expanduser()) / "autotune" / "cubin"


def _trusted_folder() -> Path:
    """Returns the cache folder; if others could write to it, a folder of this process, with a warning."""
    folder = cache_folder()
    try:
        return make_folder(folder.parent, folder.name)
    except UsageError as error:
        _tell(str(error))
        return _own_folder()


@lru_cache(maxsize=16)
def _tell(text: str) -> None:
    logging.getLogger("autotune").warning("%s", text)


@lru_cache(maxsize=1)
def _own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="autotune-cubin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
