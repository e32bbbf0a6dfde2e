"""The host as an engine's backend: the CPU runs the rendered CUDA in its plain build, each step at once."""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...core.config import Config
from ...core.definition import AnyKernel, Array, Device
from ...core.errors import TrialFailure, UsageError
from ...core.problem import Problem
from ...devices import host
from ...devices.base import Argument, Constant
from ...devices.host.buffer import HostMemory
from ...devices.host.session import HostFunction
from ...rendering.render import render
from ...runtime.binding import Binding
from .backend import Sent, Stream, Transform, check_served
from .host_workers import HostWorkers


class HostEvent:
    """An event that has happened: the host does everything at once."""

    def __init__(self) -> None:
        self._at = time.perf_counter()

    def wait(self) -> None:
        return

    def is_done(self) -> bool:
        return True

    def seconds_since(self, earlier: "HostEvent") -> float:
        return self._at - earlier._at


class HostStream:
    """Does everything at once."""

    def copy(self, to: np.ndarray, source: np.ndarray) -> None:
        to[...] = source

    copy_in = copy_out = copy

    def send(self, pieces: Sequence[Sent]) -> None:
        for to, source in pieces:
            to[...] = source

    def zero(self, array: np.ndarray) -> None:
        array[...] = 0

    def after(self, event: HostEvent) -> None:
        return

    def record(self, is_timed: bool = False) -> HostEvent:
        return HostEvent()


class HostLauncher:
    """Implements ``backend.Launcher`` with the host's plain build."""

    def __init__(self, kernel: AnyKernel, problem: Problem, config: Config, device: Device) -> None:
        self.config, self._kernel, self._device = config, kernel, device
        check_served(kernel, problem, config, device)
        try:
            binary = host.compile(render(kernel, problem, config), device, ("plain",))
        except TrialFailure as failure:
            raise UsageError(f"{kernel.name} cannot be compiled for {device.name}: {failure.message}") from failure
        self._function = HostFunction(device, binary, "plain")
        self._workspace: dict[str, np.ndarray] = {}
        self._geometry = lru_cache(maxsize=256)(self._geometry_of)
        self._binding = lru_cache(maxsize=256)(partial(Binding.of, kernel))

    def __call__(
        self, problem: Problem, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, object], on: HostStream
    ) -> None:
        geometry = self._geometry(problem)
        binding = self._binding(problem)
        scalars = binding.scalars(inputs, binding.lengths(arrays))
        memory = {name: self._memory(name, arrays[name], spec.written) for name, spec in binding.specs.items()}
        arguments: list[Argument | HostMemory] = binding.ordered(memory, scalars)
        arguments += [self._space(name, spec) for name, spec in geometry.workspace.items()]
        arguments += [Constant(name, arrays[name]) for name in binding.constants]
        try:
            self._function.launch(geometry, arguments)
        except TrialFailure as failure:
            raise UsageError(f"{self._kernel.name} failed: {failure.message}") from failure

    def _space(self, name: str, spec: Array) -> HostMemory:
        """Returns a workspace array, which is reused and grows."""
        if name not in self._workspace or self._workspace[name].nbytes < spec.n_bytes:
            self._workspace[name] = aligned((spec.n_bytes,), np.uint8, spec.align)
        return self._memory(name, self._workspace[name], True)

    @staticmethod
    def _memory(name: str, array: np.ndarray, written: bool) -> HostMemory:
        return HostMemory(name, array.ctypes.data, array.nbytes, written=written)

    def _geometry_of(self, problem: Problem) -> Any:
        check_served(self._kernel, problem, self.config, self._device)
        return self._kernel.launch(problem, self.config)


class HostBackend:
    """Implements ``backend.Backend`` on the CPU. ``workers`` do the engines' work in NumPy."""

    def __init__(self) -> None:
        self.workers = HostWorkers()
        self.identifier = "host"
        self.device = host.describe(self.identifier)

    def pinned(self, shape: Sequence[int], dtype: object) -> np.ndarray:
        return aligned(shape, dtype)

    empty = pinned

    def stream(self) -> HostStream:
        return HostStream()

    def launcher(self, kernel: AnyKernel, problem: Problem, config: Config, source: str | None = None) -> HostLauncher:
        return HostLauncher(kernel, problem, config, self.device)

    def fourier(self, length: int, n: int, is_complex: bool) -> Transform:
        def transform(output: np.ndarray, samples: np.ndarray, on: Stream) -> None:
            one = np.fft.fft if is_complex else np.fft.rfft
            with np.errstate(all="ignore"):  # missing spectra may hold any values
                output[...] = one(samples, axis=-1)

        return transform

    def finish(self) -> None:
        return


def aligned(shape: Sequence[int], dtype: Any, align: int = 256) -> np.ndarray:
    """Returns uninitialised memory at a multiple of ``align`` bytes, like a device's allocator."""
    dtype = np.dtype(dtype)
    n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(n_bytes + align, np.uint8)
    first = -memory.ctypes.data % align
    return np.asarray(memory[first : first + n_bytes].view(dtype).reshape(shape))
