"""A GPU as an engine's backend, through CuPy: streams, pinned memory, cuFFT, and prepared kernels."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...core.config import Config
from ...core.definition import AnyKernel
from ...core.errors import TrialFailure, UsageError
from ...core.problem import Problem
from ...rendering.render import render
from ...runtime import gpu
from ...runtime.prepared import PreparedKernel
from .backend import DeviceArray, Transform, check_served

WORDS = (np.uint64, np.uint8)  # a thread copies one of them: requests of few bytes are slow over PCIe


class GpuEvent:
    """A point in a CUDA stream."""

    def __init__(self, stream: object, is_timed: bool) -> None:
        import cupy

        self.event = cupy.cuda.Event(block=True, disable_timing=not is_timed)  # who waits does not spin
        self.event.record(stream)

    def wait(self) -> None:
        self.event.synchronize()

    def is_done(self) -> bool:
        return bool(self.event.done)

    def seconds_since(self, earlier: "GpuEvent") -> float:
        import cupy

        return float(cupy.cuda.get_elapsed_time(earlier.event, self.event)) / 1e3


class GpuStream:
    """A CUDA stream beside the others."""

    def __init__(self) -> None:
        import cupy

        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._copy, self._kinds = cupy.cuda.runtime.memcpy2DAsync, cupy.cuda.runtime
        self._set = cupy.cuda.runtime.memsetAsync

    def copy_in(self, to: DeviceArray, source: np.ndarray) -> None:
        self._two_dimensional(to.data.ptr, to, source.ctypes.data, source, self._kinds.memcpyHostToDevice)

    def send(self, to: DeviceArray, source: np.ndarray) -> None:
        # A kernel reads the pinned memory: the copy engine would finish the chunks before it that other streams gave.
        address, n_bytes = source.ctypes.data, source.nbytes
        word = word_of(address, to.data.ptr, n_bytes)
        with self.stream:
            read_pinned(word)(mapped(address, n_bytes, word), to.reshape(-1).view(word))

    def copy_out(self, to: np.ndarray, source: DeviceArray) -> None:
        self._two_dimensional(to.ctypes.data, to, source.data.ptr, source, self._kinds.memcpyDeviceToHost)

    def copy(self, to: DeviceArray, source: DeviceArray) -> None:
        self._two_dimensional(to.data.ptr, to, source.data.ptr, source, self._kinds.memcpyDeviceToDevice)

    def zero(self, array: DeviceArray) -> None:
        self._set(array.data.ptr, 0, array.nbytes, self.stream.ptr)

    def after(self, event: GpuEvent) -> None:
        self.stream.wait_event(event.event)

    def record(self, is_timed: bool = False) -> GpuEvent:
        return GpuEvent(self.stream, is_timed)

    def _two_dimensional(self, to_address: int, to: Any, source_address: int, source: Any, kind: int) -> None:
        """Copies arrays of one shape whose entries along axis 0 may lie apart, each contiguous."""
        if to.shape != source.shape or to.dtype != source.dtype:
            raise UsageError(f"{to.dtype} {list(to.shape)} cannot take a copy of {source.dtype} {list(source.shape)}")
        if not to.size:
            return
        if to.flags.c_contiguous and source.flags.c_contiguous:
            n, width = 1, to.nbytes
            to_pitch = source_pitch = width
        else:
            n, width = to.shape[0], to.nbytes // to.shape[0]
            to_pitch, source_pitch = (a.strides[0] if n > 1 else width for a in (to, source))
            if not (to[0].flags.c_contiguous and source[0].flags.c_contiguous):
                raise UsageError("copies on a GPU are of arrays that are contiguous but for their first axis")
        self._copy(to_address, to_pitch, source_address, source_pitch, width, n, kind, self.stream.ptr)


class GpuLauncher:
    """Implements ``backend.Launcher``."""

    def __init__(self, prepared: PreparedKernel) -> None:
        self.config, self._prepared = prepared.config, prepared

    def __call__(
        self, problem: Problem, arrays: Mapping[str, DeviceArray], inputs: Mapping[str, object], on: GpuStream
    ) -> None:
        self._prepared.launch(problem, arrays, inputs, on.stream)


class GpuBackend:
    """Implements ``backend.Backend`` on the GPU ``index``.

    Raises:
        UsageError: when CuPy finds no usable GPU.
    """

    def __init__(self, index: int = 0) -> None:
        gpu.current()
        self.index, self.identifier = index, f"cuda:{index}"
        self.device = gpu.describe_gpu(index)
        for word in WORDS:  # compiles what sends
            self.stream().send(self.empty((1,), word), self.pinned((1,), word))
        self.finish()

    def pinned(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        import cupy

        dtype, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        memory = cupy.cuda.alloc_pinned_memory(max(1, count * dtype.itemsize))
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def empty(self, shape: Sequence[int], dtype: object) -> DeviceArray:
        import cupy

        with gpu.made_current(self.index):
            return cupy.empty(tuple(shape), dtype)

    def stream(self) -> GpuStream:
        with gpu.made_current(self.index):
            return GpuStream()

    def launcher(self, kernel: AnyKernel, problem: Problem, config: Config, source: str | None = None) -> GpuLauncher:
        check_served(kernel, problem, config, self.device)
        try:
            text = source or render(kernel, problem, config).source
        except TrialFailure as failure:
            raise UsageError(f"{kernel.name} cannot be rendered: {failure.message}") from failure
        return GpuLauncher(PreparedKernel(kernel, problem, config, text, self.device, self.index))

    def fourier(self, length: int, n: int, is_complex: bool) -> Transform:
        from cupy.cuda import cufft

        with gpu.made_current(self.index):
            plan = cufft.Plan1d(length, cufft.CUFFT_C2C if is_complex else cufft.CUFFT_R2C, n)

        def transform(output: DeviceArray, samples: DeviceArray, on: Any) -> None:
            with on.stream:
                plan.fft(samples, output, cufft.CUFFT_FORWARD)

        return transform

    def finish(self) -> None:
        import cupy

        with gpu.made_current(self.index):
            cupy.cuda.runtime.deviceSynchronize()


def word_of(*given: int) -> Any:
    """Returns what a thread copies where addresses and a number of bytes are as given."""
    return next(word for word in WORDS if all(value % np.dtype(word).itemsize == 0 for value in given))


@cache
def read_pinned(word: Any) -> Any:
    """Returns a kernel that copies words from pinned memory, which a GPU can read where it is."""
    import cupy

    name = np.dtype(word).name
    return cupy.ElementwiseKernel(f"raw {name} source", f"{name} to", "to = source[i]", f"autotune_read_{name}")


@lru_cache(maxsize=4096)
def mapped(address: int, n_bytes: int, word: Any) -> DeviceArray:
    """Returns pinned memory as an array of the device."""
    import cupy

    memory = cupy.cuda.UnownedMemory(address, n_bytes, None)
    return cupy.ndarray((n_bytes // np.dtype(word).itemsize,), word, cupy.cuda.MemoryPointer(memory, 0))
