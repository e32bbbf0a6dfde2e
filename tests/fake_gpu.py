"""A GPU that only takes notes: real cupy.ndarray objects over host memory, and launches that are recorded.

It lets everything around a launch be tested anywhere: checks, choices, geometry, the order and types of arguments.
"""

import ctypes
import importlib.util
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import cupy
import numpy as np
import pytest

from autotune import Device


@dataclass
class Launched:
    """One launch as the driver would see it."""

    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    shared_bytes: int
    stream: Any
    constants: dict[str, bytes]  # what constant memory holds
    function: str


@dataclass
class FakeGpu:
    """What was launched, and how many binaries were loaded; ``devices`` by index."""

    devices: list[Device]
    current: int = 0
    launched: list[Launched] = field(default_factory=list)
    loaded: list[Any] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)  # memory by name, of the bytes last copied
    copies: list[tuple[int, Any]] = field(default_factory=list)  # bytes and stream of each copy there
    driver: str = "580.82.07"
    free_bytes: int = 1 << 36
    is_capturing: bool = False
    shares_faults: str | None = None

    def constant_address(self, loaded: Any, name: str) -> int:
        memory = self.constants.setdefault(name, np.zeros(1 << 16, np.uint8))
        return int(memory.ctypes.data)

    def copy_to(self, address: int, source: Any, n_bytes: int, stream: Any) -> None:
        start = source if isinstance(source, int) else np.ascontiguousarray(source).ctypes.data
        ctypes.memmove(address, start, n_bytes)
        self.copies.append((n_bytes, stream))

    @property
    def last(self) -> Launched:
        return self.launched[-1]


class Raw:
    """As much of a cupy.RawKernel as a launcher uses."""

    def __init__(self, gpu: FakeGpu, source: str, name: str) -> None:
        self.max_dynamic_shared_size_bytes = 0

        def kernel(grid: Any, block: Any, arguments: Any, shared: int, stream: Any) -> None:
            held = {name: memory.tobytes() for name, memory in gpu.constants.items()}
            gpu.launched.append(Launched(source, grid, block, arguments, shared, stream, held, name))

        self.kernel = kernel


class Unordered:
    """Offers as much of ``gpu.Order`` as is called."""

    def begin(self, stream: Any) -> None:
        return

    def end(self, stream: Any) -> None:
        return


def array(data: np.ndarray, *, index: int = 0, shift: int = 0) -> Any:
    """A cupy.ndarray on "GPU ``index``" with ``data``, ``shift`` bytes after an address that 512 divides."""
    memory = np.zeros(data.nbytes + 1024, np.uint8)
    start = -memory.ctypes.data % 512 + shift
    memory[start : start + data.nbytes] = np.frombuffer(data.tobytes(), np.uint8)
    owned = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, index)
    return cupy.ndarray(data.shape, data.dtype, memptr=cupy.cuda.MemoryPointer(owned, start))


def import_package(folder: Path, name: str) -> ModuleType:
    """The package in ``folder``, imported under a name of its own."""
    for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[loaded]
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install(monkeypatch: pytest.MonkeyPatch, package: ModuleType, *devices: Device) -> FakeGpu:
    """Make the emitted ``package`` see ``devices`` as its GPUs."""
    fake = FakeGpu(list(devices))
    gpu = sys.modules[f"{package.__name__}._autotune.runtime.gpu"]
    launcher = sys.modules[f"{package.__name__}._autotune.runtime.launcher"]

    def allocate(specs: Any, library: str, index: int, stream: Any) -> list[Any]:
        assert library == "cupy"
        sys.modules[f"{package.__name__}._autotune.runtime.arrays"].readers.setdefault(
            cupy.ndarray, gpu_arrays_reader(package)
        )
        return [array(np.zeros(spec.shape, spec.dtype), index=index) for spec in specs]

    def load(cubin: Any, name: str) -> Raw:
        fake.loaded.append(Raw(fake, cubin.key, name))
        return fake.loaded[-1]  # type: ignore[no-any-return]

    replacements: dict[str, Callable[..., Any]] = {
        "current": lambda: fake.current,
        "current_getter": lambda: lambda: fake.current,
        "made_current": lambda index: nullcontext(),
        "describe_gpu": lambda index: fake.devices[index],
        "load_function": load,
        "constant_address": fake.constant_address,
        "copy_to": fake.copy_to,
        "current_stream": lambda: None,
        "Order": Unordered,
        "memory": lambda n_bytes: array(np.zeros(n_bytes, np.uint8), index=fake.current),
        "synchronize": lambda: None,
        "driver": lambda: fake.driver,
        "free_bytes": lambda index: fake.free_bytes,
        "is_capturing": lambda stream: fake.is_capturing,
        "shares_faults": lambda: fake.shares_faults,
    }
    for name, function in replacements.items():
        monkeypatch.setattr(gpu, name, function)
    monkeypatch.setattr(launcher, "allocate", allocate)
    return fake


def gpu_arrays_reader(package: ModuleType) -> Any:
    """The reader of cupy.ndarray in ``package``."""
    return sys.modules[f"{package.__name__}._autotune.runtime.arrays"].read_cupy  # type: ignore[attr-defined]
