"""Loads a cubin on one GPU and launches its functions in order, with a workspace that all launches share."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.definition import Array, Device, Kernel, Launch
from ..core.errors import TrialFailure, UsageError
from ..core.launch import function_named
from ..core.problem import Problem
from . import gpu
from .nvrtc import Cubin
from .tensor_map import addresses, encoded

Enqueue = Callable[[tuple[Any, ...], Any], None]  # (arguments in the kernel's order, stream)


class LoadedKernel:
    """The functions of one source on the GPU ``index``, in one binary, which comes from the cache or is compiled.

    All launches share one workspace, as large as the largest launch needs. So launches that need it run one after
    another, whatever their streams.

    Raises:
        UsageError: when the source does not compile.
    """

    def __init__(self, kernel: Kernel[Problem], launch: Launch, source: str, device: Device, index: int) -> None:
        own = function_named(kernel.name, launch)
        names = dict.fromkeys((own, *(step.function or own for step in launch.steps)))
        self._name, self._device, self._index = own, device, index
        self.cubin: Cubin = gpu.cubin_of(source, own, device.arch, tuple(names)[1:])
        with gpu.made_current(index):
            self._functions = {name: gpu.load_function(self.cubin, name) for name in names}
        self._opted_in: dict[str, int] = {}  # dynamic shared bytes; never lowered, since earlier plans need theirs
        self._workspace = _Workspace()

    @property
    def own(self) -> Any:
        """Returns the function that has the kernel's name, as a cupy.RawKernel."""
        return self._functions[self._name]

    @property
    def workspace_bytes(self) -> int:
        """Returns the bytes of device memory that its launches use in addition to their arguments."""
        return self._workspace.n_bytes

    def bound(self, launch: Launch) -> Enqueue:
        """Returns a function that enqueues ``launch`` and its successors; allocates their workspace.

        Raises:
            UsageError: when a block needs more shared memory than the GPU has.
        """
        with gpu.made_current(self._index):
            steps = [(step, self._bound(step)) for step in launch.steps if 0 not in step.grid]
            self._workspace.reserve(launch.workspace)
        if launch.positions is None:
            return steps[0][1] if steps else lambda arguments, stream: None
        if not launch.workspace:
            return lambda arguments, stream: _enqueue(steps, arguments, stream)
        space = self._workspace
        return lambda arguments, stream: space.launch(
            launch.workspace, stream, lambda arrays: _enqueue(steps, (*arguments, *arrays), stream)
        )

    def _bound(self, step: Launch) -> Enqueue:
        """Returns ``enqueue(arguments, stream)`` for one launch; it also encodes the tensor maps."""
        name = step.function or self._name
        function = self._ready(name, int(step.shared_bytes))
        grid, block = tuple(map(int, step.grid)), tuple(map(int, step.block))
        dynamic, maps = int(step.shared_bytes), step.maps
        if not maps:
            return lambda arguments, stream: function(grid, block, arguments, dynamic, stream)

        def enqueue(arguments: tuple[object, ...], stream: object) -> None:
            at = addresses(arguments)
            try:
                tensor_maps = [encoded(m, at[m.argument]) for m in maps]
            except TrialFailure as failure:
                raise UsageError(f"{name} cannot be launched: {failure.message}") from failure
            function(grid, block, (*arguments, *tensor_maps), dynamic, stream)

        return enqueue

    def _ready(self, name: str, dynamic: int) -> Any:
        """Returns the function with ``dynamic`` bytes of shared memory opted in."""
        needed, most = dynamic + (self.cubin.of(name).shared_bytes or 0), self._device.max_shared_bytes
        if needed > most:
            raise UsageError(f"{name} needs {needed} bytes of shared memory in a block, {self._device.name} has {most}")
        if dynamic > self._opted_in.get(name, 0):
            self._functions[name].max_dynamic_shared_size_bytes = self._opted_in[name] = dynamic
        return self._functions[name].kernel


def _enqueue(steps: list[tuple[Launch, Enqueue]], arguments: tuple[object, ...], stream: object) -> None:
    for step, enqueue in steps:
        enqueue(tuple(step.own(arguments)), stream)


class _Workspace:
    """Named buffers, each as large as the largest launch needs."""

    def __init__(self) -> None:
        self._memory: dict[str, Any] = {}
        self._order: gpu.Order | None = None
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        return sum(memory.nbytes for memory in self._memory.values())

    def reserve(self, wanted: Mapping[str, Array]) -> None:
        """Allocates missing or larger buffers; waits for launches that still use a buffer before it is replaced."""
        with self._lock:
            if wanted and self._order is None:
                self._order = gpu.Order()
            for name, spec in wanted.items():
                if name not in self._memory or self._memory[name].nbytes < spec.n_bytes:
                    if self._memory.pop(name, None) is not None:
                        gpu.synchronize()
                    self._memory[name] = gpu.memory(spec.n_bytes)

    def launch(self, wanted: Mapping[str, Array], stream: object, launch: Callable[[Sequence[object]], None]) -> None:
        """Calls ``launch`` with the buffers, in order after all other launches that use them."""
        assert self._order is not None  # reserved before
        on = gpu.current_stream() if stream is None else stream
        with self._lock:
            self._order.begin(on)
            try:
                launch([self._memory[name] for name in wanted])
            finally:
                self._order.end(on)
