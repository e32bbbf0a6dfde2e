"""Runs kernels of the host device: it loads them into this process, and launches one at a time."""

import _ctypes
import ctypes
import struct
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.definition import BEYOND_CONSTANTS, BEYOND_PATTERN, Device, Launch, TensorMap, array_constant
from ...core.errors import Status, TrialFailure
from ...runtime.cubin import check_constants
from ..base import TIMED_ALIGN, Argument, Binary, Constant, LaunchRun, Sample
from .buffer import HostBuffer, HostMemory
from .build import MAX_STATIC_SHARED_BYTES, read_facts
from .runtime import KernelInfo, MemoryRange, Options, host_runtime, name_lines, schedule_of
from .translation import own_name

SCALAR_KINDS: dict[str, tuple[type, ...]] = {"f": (np.floating,), "i": (np.integer, np.bool_)}
ARGUMENT_ALIGN = 128  # bytes: the largest alignment of a parameter in CUDA
ARRAY_ALIGN = 32  # bytes: the alignment that g++ gives large arrays
NO_MEMORY = 2  # cuda_host_launch returns it
ONE_LAUNCH = threading.Lock()  # the runtime runs one launch at a time, and a library has one shared and constant memory
MAP = struct.Struct("<Q2I5Q4Q5I I 16x")  # BoxMap of abi.hpp, padded to the 128 bytes of a tensor map


class HostSession:
    """Implements ``base.Session`` on the CPU."""

    check_builds = ("check", "plain")
    timed_build = "plain"
    keep_bytes = 8 << 30

    def __init__(self, device: Device) -> None:
        self.device = device
        host_runtime()  # compile now, so that the first launch is not slow

    def load(self, binary: Binary, build: str) -> "HostFunction":
        return HostFunction(self.device, binary, build)

    def clock_hz(self) -> float:
        return 0.0

    def release(self) -> None:
        """Does nothing, since the session keeps no memory."""

    def ceilings(self) -> None:
        """Returns None: a CPU's roofline says nothing about variants of a GPU kernel."""

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], *, written: bool, align: int = TIMED_ALIGN
    ) -> HostBuffer:
        return HostBuffer(name, shape, np.dtype(dtype), written=written, align=align)


class HostFunction:
    """A kernel of a loaded library, in one of its builds; its functions are launched one after another."""

    def __init__(self, device: Device, binary: Binary, build: str) -> None:
        self._device = device
        self._kernel = binary.kernel
        self._path = Path(binary.files[build])
        self._checks = build == "check"
        facts = read_facts(self._path)
        self._shared_bytes = facts.shared_bytes
        host_runtime()
        try:
            library = ctypes.CDLL(str(self._path))
        except OSError as error:
            if lacking := own_name(str(error)):
                why = f"the source declares {lacking} and does not define it"
                raise TrialFailure(Status.COMPILE_FAILED, f"{binary.kernel}: {why}") from error
            raise TrialFailure(Status.LAUNCH_FAILED, f"{binary.kernel} cannot be loaded: {error}") from error
        weakref.finalize(self, _ctypes.dlclose, library._handle)
        parameters = {binary.kernel: binary.parameters}
        names = (binary.kernel, *binary.also)
        self._entries = {name: _Entry(library, name, binary.symbol(name), parameters.get(name, ())) for name in names}
        base = _load_address(library, binary.symbol(binary.kernel))
        self._variables = [
            MemoryRange(each.name.encode(), base + each.offset, each.n_bytes, each.kind.encode(), b"\1")
            for each in facts.variables
        ]
        self._constant_bytes = facts.constant_bytes

    def launch(self, launch: Launch, arguments: Sequence[Argument | HostMemory], *, seed: int = 0) -> None:
        """Launches and waits, in the schedule that ``seed`` selects; seed 0 is the fastest.

        Raises:
            TrialFailure: resources, before anything runs; launch_failed, for a finding of the runtime or the checker.
        """
        with ONE_LAUNCH:
            for prepared in self._prepare(launch, arguments, seed):
                self._call(*prepared)

    def samples(
        self, launch: Launch, arguments: Sequence[Argument | HostMemory], n: int, *, cold: bool
    ) -> list[Sample]:
        """Times ``n`` launches by the wall clock. ``cold`` has no effect: a CPU's caches differ from a GPU's."""
        taken = []
        with ONE_LAUNCH:
            prepared = self._prepare(launch, arguments, 0)
            for _ in range(n):
                start = time.perf_counter()
                for each in prepared:
                    self._call(*each)
                taken.append(Sample(time.perf_counter() - start))
        return taken

    def stream(self, launch: Launch, arguments: Sequence[Argument | HostMemory], seconds: float) -> LaunchRun:
        """Times launches, at least one, by the wall clock."""
        taken: list[float] = []
        while sum(taken) < seconds or not taken:
            taken += [sample.seconds for sample in self.samples(launch, arguments, 1, cold=False)]
        return LaunchRun(taken, len(taken))

    def _call(self, entry: "_Entry", options: Options, pointers: object, ranges: Any, keep: list[object]) -> None:
        library = host_runtime()
        info = ctypes.byref(entry.info)
        status = library.cuda_host_launch(
            entry.name.encode(), info, pointers, ctypes.byref(options), ranges, len(ranges)
        )
        if status:
            message = library.cuda_host_error().decode(errors="replace")
            if status == NO_MEMORY:
                raise MemoryError(f"{entry.name}: {message}")
            raise TrialFailure(Status.LAUNCH_FAILED, name_lines(message, self._path))

    def _check_geometry(self, entry: "_Entry", launch: Launch) -> None:
        device = self._device
        problems = []
        if launch.n_threads > device.max_threads_per_block:
            problems.append(f"{launch.n_threads} threads in a block, the device has {device.max_threads_per_block}")
        for what, have, limits in (("block", launch.block, device.max_block), ("grid", launch.grid, device.max_grid)):
            for axis, size, limit in zip("xyz", have, limits, strict=True):
                if not 1 <= size <= limit:
                    problems.append(f"{what}.{axis} is {size}, it may be 1 to {limit}")
        shared_bytes = self._shared_bytes + launch.shared_bytes
        if shared_bytes > device.max_shared_bytes:
            problems.append(f"{shared_bytes} bytes of shared memory, the device has {device.max_shared_bytes}")
        if self._shared_bytes > MAX_STATIC_SHARED_BYTES:
            problems.append(f"{self._shared_bytes} bytes of static shared memory, CUDA has {MAX_STATIC_SHARED_BYTES}")
        if problems:
            raise TrialFailure(Status.RESOURCES, f"{entry.name}: {'; '.join(problems)}")
        if 0 < entry.info.most_threads < launch.n_threads:
            why = f"{launch.n_threads} threads in a block; its __launch_bounds__ say {entry.info.most_threads}"
            raise TrialFailure(Status.LAUNCH_FAILED, f"{entry.name}: {why}")

    def _prepare(
        self, launch: Launch, arguments: Sequence[Argument | HostMemory], seed: int
    ) -> "list[tuple[_Entry, Options, Any, Any, list[Any]]]":
        """Returns the prepared launches; if there are several, empty ones are left out."""
        constants = {a.name: a for a in arguments if isinstance(a, Constant)}
        given = [a for a in arguments if not isinstance(a, Constant)]
        steps = [step for step in launch.steps if launch.then is None or 0 not in step.grid]
        return [self._step(step, step.own(given), constants, seed) for step in steps]

    def _step(
        self,
        launch: Launch,
        arguments: list[Argument | HostMemory],
        constants: Mapping[str, Constant],
        seed: int,
    ) -> "tuple[_Entry, Options, Any, Any, list[Any]]":
        """Returns (function, options, argument pointers, accessible ranges, objects that must stay alive)."""
        entry = self._entries[launch.function or self._kernel]
        self._check_geometry(entry, launch)
        arguments += [_box_map(m, arguments) for m in launch.maps]
        entry.check_arguments(arguments)
        schedule, block_order, poison = schedule_of(seed)
        options = Options(launch.grid, launch.block, launch.shared_bytes, seed, schedule, block_order, poison)
        options.check = self._checks
        keep: list[Any] = []
        ranges = self._filled(constants) if constants else list(self._variables)
        for argument in arguments:
            if isinstance(argument, HostMemory):
                keep.append(ctypes.c_void_p(argument.address))
                written = bytes([argument.written])
                ranges.append(MemoryRange(argument.name.encode(), argument.address, argument.n_bytes, b"b", written))
            else:
                keep.append(_aligned(np.asarray(argument).tobytes()))
        pointers = (ctypes.c_void_p * max(1, len(keep)))(*map(ctypes.addressof, keep))
        return entry, options, pointers, (MemoryRange * len(ranges))(*ranges), keep

    def _filled(self, constants: Mapping[str, Constant]) -> list[MemoryRange]:
        """Fills constant memory; returns the ranges of the library's variables. The ranges of constants are read-only.

        Raises:
            TrialFailure: definition_failed, if a variable is missing or too small.
        """
        specs = {name: array_constant(c.values.dtype, *c.values.shape) for name, c in constants.items()}
        check_constants(self._kernel, specs, self._constant_bytes)
        ranges = []
        for variable in self._variables:
            if variable.name.decode() == BEYOND_CONSTANTS:
                ends = (v.start + v.n_bytes for v in self._variables)
                gaps = (variable.start - end for end in ends)  # alignment leaves some bytes out
                gap = min((gap for gap in gaps if 0 <= gap < ARRAY_ALIGN), default=0)
                ctypes.memset(variable.start - gap, BEYOND_PATTERN, gap + variable.n_bytes)
                continue  # without a range, a checked launch stops at a read of it
            constant = constants.get(variable.name.decode()) if variable.kind == b"v" else None
            if constant is not None:
                values = np.ascontiguousarray(constant.values)
                ctypes.memmove(variable.start, values.ctypes.data, values.nbytes)
                variable = MemoryRange(variable.name, variable.start, variable.n_bytes, variable.kind, b"\0")
            ranges.append(variable)
        return ranges


class _Entry:
    """One ``__global__`` function of a loaded library, with the known names of its parameters."""

    def __init__(self, library: ctypes.CDLL, name: str, symbol: str, parameters: tuple[str, ...]) -> None:
        self.name, self.info, self._parameters = name, KernelInfo(), parameters
        getattr(library, f"cuda_host_describe_{symbol}")(ctypes.byref(self.info))

    def check_arguments(self, arguments: Sequence[Argument | HostMemory]) -> None:
        """Raises TrialFailure, launch_failed, unless number, kinds and sizes of the arguments fit the signature."""
        info = self.info
        if len(arguments) != info.n_parameters:
            named = f" ({', '.join(self._parameters)})" if self._parameters else ""
            self._refuse(f"it has {info.n_parameters} parameters{named}, {len(arguments)} arguments were given")
        for i, argument in enumerate(arguments):
            kind, size = info.kinds[i : i + 1].decode(), info.sizes[i]
            parameter = self._parameters[i] if i < len(self._parameters) else f"parameter {i}"
            if isinstance(argument, HostMemory):
                if kind != "p":
                    self._refuse(f"{parameter} is not a pointer, but the argument is the array {argument.name}")
                continue
            if kind == "p":
                self._refuse(f"{parameter} is a pointer, but the argument is the number {argument!r}")
            value = np.asarray(argument)
            if value.dtype.itemsize != size or not isinstance(argument, SCALAR_KINDS.get(kind, (np.generic,))):
                wanted = {"f": "a float", "i": "an integer"}.get(kind, "a structure")
                self._refuse(f"{parameter} is {wanted} of {size} bytes, the argument is {value.dtype} {argument!r}")

    def _refuse(self, why: str) -> None:
        raise TrialFailure(Status.LAUNCH_FAILED, f"the arguments do not fit the signature of {self.name}: {why}")


def _aligned(raw: bytes) -> Any:
    """Returns a buffer with these bytes at a multiple of ARGUMENT_ALIGN, since a structure may need it."""
    whole = ctypes.create_string_buffer(len(raw) + ARGUMENT_ALIGN)
    made = (ctypes.c_char * len(raw)).from_buffer(whole, -ctypes.addressof(whole) % ARGUMENT_ALIGN)
    made.raw = raw
    return made


def _box_map(tensor_map: TensorMap, arguments: Sequence[Argument | HostMemory]) -> np.void:
    array = arguments[tensor_map.argument]
    assert isinstance(array, HostMemory)
    n = len(tensor_map.shape)
    none = (0,) * (5 - n)  # zeros for absent axes
    shape, strides, box = (*tensor_map.shape, *none), (*tensor_map.strides, *none), (*tensor_map.box, *none)
    return np.void(MAP.pack(array.address, n, tensor_map.element, *shape, *strides, *box, tensor_map.swizzle))


class _SymbolPlace(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = (
        ("path", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _load_address(library: ctypes.CDLL, symbol: str) -> int:
    """Returns the address of the file's offset 0 in this process."""
    place = _SymbolPlace()
    function = ctypes.cast(library[f"cuda_host_describe_{symbol}"], ctypes.c_void_p)
    ctypes.CDLL(None).dladdr(function, ctypes.byref(place))
    return int(place.base)
