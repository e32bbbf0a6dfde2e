"""A GPU as an engine's backend, through CuPy: streams, pinned memory, cuFFT, and prepared kernels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.config import Config
from ...core.definition import AnyKernel
from ...core.errors import TrialFailure, UsageError
from ...core.problem import Problem
from ...rendering.render import render
from ...runtime import gpu
from ...runtime.prepared import PreparedKernel
from .backend import MOST_SENT, DeviceArray, Sent, Transform, check_served

SEND, SEND_SOURCE = "autotune_send", Path(__file__).with_name("send.cu")
SENT = np.dtype([("to", np.uint64), ("from", np.uint64), ("n_bytes", np.uint64)])  # the struct in send.cu
SEND_THREADS, MOST_SEND_BLOCKS = 256, 64  # a thread copies eight bytes at a time


class GpuEvents:
    """A pool of one GPU's free CUDA events, timed and untimed, since making an event takes longer than using it.

    An event comes back when nobody can wait for it any more, and may be recorded again at once, even if the work
    before it is not done: a stream's wait refers to the event's state at the time of that call (cudaEventRecord,
    CUDA Runtime API). Several threads hold events; append and pop of a list are atomic.

    The pool also keeps a reference to all events. Otherwise, if the last holder of an event is in a cycle, the garbage
    collector would destroy the event as well as hand it back.
    """

    def __init__(self) -> None:
        self._all: list[Any] = []
        self._free: dict[bool, list[Any]] = {True: [], False: []}

    def recorded(self, stream: int, is_timed: bool) -> "GpuEvent":
        """Returns the event after a stream's work so far."""
        import cupy

        free = self._free[is_timed]
        try:
            event = free.pop()
        except IndexError:
            event = cupy.cuda.Event(block=True, disable_timing=not is_timed)  # a waiting thread does not spin
            self._all.append(event)
        cupy.cuda.runtime.eventRecord(event.ptr, stream)
        return GpuEvent(event, free)


class GpuEvent:
    """A point in a CUDA stream. Its CUDA event goes back to ``free`` when the last reference goes."""

    __slots__ = ("_free", "event")

    def __init__(self, event: Any, free: list[Any]) -> None:
        self.event, self._free = event, free

    def __del__(self) -> None:
        self._free.append(self.event)

    def wait(self) -> None:
        self.event.synchronize()

    def is_done(self) -> bool:
        return bool(self.event.done)

    def seconds_since(self, earlier: "GpuEvent") -> float:
        import cupy

        return float(cupy.cuda.runtime.eventElapsedTime(earlier.event.ptr, self.event.ptr)) / 1e3


class GpuStream:
    """A CUDA stream, concurrent with the others.

    Args:
        events: the events of the GPU.
        sender: the function of send.cu.
    """

    def __init__(self, events: GpuEvents, sender: Any) -> None:
        import cupy

        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._pointer, self._events, self._sender = self.stream.ptr, events, sender
        self._copy, self._kinds = cupy.cuda.runtime.memcpy2DAsync, cupy.cuda.runtime
        self._set, self._wait = cupy.cuda.runtime.memsetAsync, cupy.cuda.runtime.streamWaitEvent

    def copy_in(self, to: DeviceArray, source: np.ndarray) -> None:
        self._two_dimensional(to.data.ptr, to, source.ctypes.data, source, self._kinds.memcpyHostToDevice)

    def send(self, pieces: Sequence[Sent]) -> None:
        # A kernel reads the pinned memory, since the copy engine would first finish other streams' earlier chunks.
        if not pieces:
            return
        argument = np.zeros((), [("at", SENT, MOST_SENT)])  # passed by value
        at = [(to.data.ptr, source.ctypes.data, source.nbytes) for to, source in pieces]
        argument["at"][: len(at)] = at
        n_blocks = -(-max(n_bytes for _, _, n_bytes in at) // (8 * SEND_THREADS))
        grid = (min(max(n_blocks, 1), MOST_SEND_BLOCKS), len(at), 1)
        self._sender(grid, (SEND_THREADS, 1, 1), (argument,), 0, self.stream)

    def copy_out(self, to: np.ndarray, source: DeviceArray) -> None:
        self._two_dimensional(to.ctypes.data, to, source.data.ptr, source, self._kinds.memcpyDeviceToHost)

    def copy(self, to: DeviceArray, source: DeviceArray) -> None:
        self._two_dimensional(to.data.ptr, to, source.data.ptr, source, self._kinds.memcpyDeviceToDevice)

    def zero(self, array: DeviceArray) -> None:
        self._set(array.data.ptr, 0, array.nbytes, self._pointer)

    def after(self, event: GpuEvent) -> None:
        self._wait(self._pointer, event.event.ptr)

    def record(self, is_timed: bool = False) -> GpuEvent:
        return self._events.recorded(self._pointer, is_timed)

    def _two_dimensional(self, to_address: int, to: Any, source_address: int, source: Any, kind: int) -> None:
        """Copies arrays of one shape whose entries along axis 0 may lie apart, each contiguous."""
        if to.shape != source.shape or to.dtype != source.dtype:
            raise UsageError(f"{to.dtype} {list(to.shape)} cannot take a copy of {source.dtype} {list(source.shape)}")
        if not to.size:
            return
        n, width = to.shape[0], to.nbytes // to.shape[0]
        to_pitch, source_pitch = pitch(to), pitch(source)
        if to_pitch == source_pitch == width:  # one piece
            n, width = 1, n * width
            to_pitch = source_pitch = width
        self._copy(to_address, to_pitch, source_address, source_pitch, width, n, kind, self._pointer)


def pitch(array: DeviceArray) -> int:
    """Returns the bytes from one entry along the first axis to the next.

    Raises:
        UsageError: when an entry is not contiguous.
    """
    n_bytes = array.itemsize
    for length, stride in zip(array.shape[:0:-1], array.strides[:0:-1], strict=True):
        if length > 1 and stride != n_bytes:
            raise UsageError("copies on a GPU need arrays that are contiguous except along their first axis")
        n_bytes *= length
    return int(array.strides[0]) if array.shape[0] > 1 else n_bytes


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
        cubin = gpu.cubin_of(SEND_SOURCE.read_text(), SEND, self.device.arch)
        with gpu.made_current(index):
            self._events, self._sender = GpuEvents(), gpu.load_function(cubin, SEND).kernel

    def pinned(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        import cupy

        dtype, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        with gpu.made_current(self.index):  # another thread may call it, whose current GPU is the first one
            memory = cupy.cuda.alloc_pinned_memory(max(1, count * dtype.itemsize))
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def empty(self, shape: Sequence[int], dtype: object) -> DeviceArray:
        import cupy

        with gpu.made_current(self.index):
            return cupy.empty(tuple(shape), dtype)

    def stream(self) -> GpuStream:
        with gpu.made_current(self.index):
            return GpuStream(self._events, self._sender)

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
