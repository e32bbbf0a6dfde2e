"""One NVIDIA GPU, opened by CuPy in the worker process; an error of the CUDA context ends this process."""

import logging
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import cupy
import numpy as np

from ...core.definition import BEYOND_CONSTANTS, BEYOND_PATTERN, Device, Launch, Tolerance, array_constant
from ...core.device import Ceilings
from ...core.errors import Status, TrialFailure
from ...runtime.comparison import INTEGERS, OutputComparison
from ...runtime.cubin import as_passed, check_constants, check_structures, constant_bytes
from ...runtime.nvrtc import cached_cubin
from ...runtime.tensor_map import addresses, encoded
from ...system.cache import cache_dir
from ..base import CANARY_BYTES, TIMED_ALIGN, Argument, Binary, Constant, LaunchRun, Sample
from .comparer import Comparer
from .energy import Meter
from .guarded import GuardedMemory, Mapping, Unavailable

PLAIN_GUARD_BYTES = 256  # canaries on each side if there is no guarded memory
CANARY = 0xA5
MOST_EVENTS = 10_000  # events in one run of back-to-back launches
LOOKED_AT = 1 << 12  # first elements that are read; if these are equal, all may be
MOVED_BYTES = 1 << 26  # bytes that are moved at a time
SPIN_CYCLES = 60_000  # about 30 us: longer than the host needs to enqueue one sample

# Launch errors that leave the context intact; all others destroy it.
REFUSED = ("INVALID_VALUE", "INVALID_CONFIGURATION", "LAUNCH_OUT_OF_RESOURCES", "OUT_OF_MEMORY", "InvalidConfiguration")


class CudaBuffer:
    """An array in its own memory, as near to its end as ``align`` allows; canaries fill the rest."""

    def __init__(self, session: "CudaSession", shape: tuple[int, ...], dtype: np.dtype[np.generic], align: int) -> None:
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        align = max(align, dtype.alignment)
        self._session = session
        self._mapping, self._all = session.memory(n_bytes + align + 2 * CANARY_BYTES)
        end = self._all.data.ptr + self._all.nbytes - (CANARY_BYTES if self._mapping else PLAIN_GUARD_BYTES)
        self._start = (end - n_bytes) // align * align - self._all.data.ptr
        self._end = self._start + n_bytes
        self._all.data.memset(CANARY, self._all.nbytes)
        self.array = self._all[self._start : self._end].view(dtype).reshape(shape)
        self._kept: Any = None

    def write(self, data: np.ndarray) -> None:
        self.array.set(np.ascontiguousarray(data))

    def read(self) -> np.ndarray:
        return np.asarray(self.array.get())

    def keep(self) -> None:
        self._kept = self.array.copy()

    def restore(self) -> None:
        if self.array.nbytes:
            self.array.data.copy_from_device(self._kept.data, self.array.nbytes)

    def poison(self, pattern: int) -> None:
        self._all[self._start : self._end].data.memset(pattern, self._end - self._start)

    def hold_another(self) -> None:
        flat = self.array.reshape(-1)
        n, first = int(flat.size), flat[:LOOKED_AT].get()
        step = max(1, MOVED_BYTES // flat.itemsize)
        last = flat[n - 1 :].copy()
        for end in range(n, 1, -step):  # it begins at the end, so that no element is overwritten before it moves
            begin = max(1, end - step)
            flat[begin:end] = flat[begin - 1 : end - 1].copy()
        flat[:1] = last
        if n and (first == first[0]).all():
            cupy.invert(flat, out=flat) if flat.dtype.kind in INTEGERS else cupy.add(flat, 1, out=flat)

    def damage(self) -> str | None:
        if not self._session.comparer.n_changed(self._all, self._start, self._end, CANARY):
            return None
        before, after = (
            np.flatnonzero(side.get() != CANARY) for side in (self._all[: self._start], self._all[self._end :])
        )
        if len(after):
            nearest = f"{int(after[0]) + 1} bytes past its end"
        else:
            nearest = f"{self._start - int(before[-1])} bytes before its start"
        return f"{len(before) + len(after)} bytes were written outside the array, the nearest {nearest}"

    def compare(self, reference: np.ndarray, tolerance: Tolerance, key: str) -> OutputComparison:
        return self._session.comparer.compare(self.array, reference, tolerance, key)

    def free(self) -> None:
        self._kept = None
        del self.array, self._all
        if self._mapping is not None and self._session.guarded is not None:
            self._session.guarded.give_back(self._mapping)
            self._mapping = None


class _Ready(NamedTuple):
    """One launch with its function, and its arguments in CuPy's form, followed by its tensor maps."""

    function: "_Entry"
    launch: Launch
    pointers: tuple[object, ...]


class _Entry:
    """One ``__global__`` function of a loaded kernel."""

    def __init__(self, function: Any) -> None:
        self.raw = function
        self._opted_in = 0  # dynamic shared bytes that the function has opted in to

    def enqueue(self, launch: Launch, pointers: tuple[object, ...]) -> None:
        if launch.shared_bytes > self._opted_in:  # required above 48 KiB, including static bytes
            self.raw.max_dynamic_shared_size_bytes = self._opted_in = launch.shared_bytes
        self.raw(launch.grid, launch.block, pointers, shared_mem=launch.shared_bytes)


class CudaFunction:
    """A loaded kernel."""

    def __init__(self, session: "CudaSession", binary: Binary) -> None:
        self._session = session
        module = cupy.RawModule(path=str(binary.files["cubin"]))
        names = binary.kernel, *binary.also
        self._functions = {name: _Entry(module.get_function(binary.symbol(name))) for name in names}
        self._binary, self._name, self._path = binary, binary.kernel, binary.files["cubin"]

    def launch(self, launch: Launch, arguments: Sequence[Argument], *, seed: int = 0) -> None:
        with _faults(self._name):
            _enqueue(self._ready(launch, arguments))
            cupy.cuda.runtime.deviceSynchronize()

    def samples(self, launch: Launch, arguments: Sequence[Argument], n: int, *, cold: bool) -> list[Sample]:
        """Times ``n`` launches, each queued behind a spin kernel and, if cold, a read of twice the L2."""
        session, ready = self._session, self._ready(launch, arguments)
        passed = cupy.zeros((n, 2), dtype=cupy.uint64)
        events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(n)]
        with _faults(self._name):
            for i, (begin, end) in enumerate(events):
                session.spin((1,), (1,), (passed[i], np.int64(SPIN_CYCLES)))
                if cold:
                    session.flush_l2()
                begin.record()
                _enqueue(ready)
                end.record()
            cupy.cuda.runtime.deviceSynchronize()
        cycles_and_ns = passed.get()
        return [
            Sample(_seconds(begin, end), 1e9 * float(cycles) / max(1.0, float(ns)))
            for (begin, end), (cycles, ns) in zip(events, cycles_and_ns, strict=True)
        ]

    def stream(self, launch: Launch, arguments: Sequence[Argument], seconds: float) -> LaunchRun:
        """Times launches between events; if there are too many launches, several share an event."""
        ready = self._ready(launch, arguments)
        with _faults(self._name):
            each = _best_of(3, lambda: _enqueue(ready))
            n_together = 1 + int(seconds / each) // MOST_EVENTS
            n = max(1, int(seconds / (each * n_together)))
            events = [cupy.cuda.Event() for _ in range(n + 1)]
            before = self._session.meter.joules()
            events[0].record()
            for event in events[1:]:
                for _ in range(n_together):
                    _enqueue(ready)
                event.record()
            cupy.cuda.runtime.deviceSynchronize()
            after = self._session.meter.joules()
        taken = [_seconds(begin, end) / n_together for begin, end in pairwise(events)]
        return LaunchRun(taken, n * n_together, None if before is None or after is None else after - before)

    @cached_property
    def _cubin(self) -> bytes:
        return self._path.read_bytes()

    def _ready(self, launch: Launch, arguments: Sequence[Argument]) -> list[_Ready]:
        """Fills constant memory; returns the launches with their arguments, without empty launches."""
        constants = [a for a in arguments if isinstance(a, Constant)]
        given = [a.array if isinstance(a, CudaBuffer) else a for a in arguments if not isinstance(a, Constant)]
        if constants:
            self._fill(constants)
        return [self._step(step, step.own(given)) for step in launch.steps if 0 not in step.grid]

    def _step(self, launch: Launch, given: Sequence[object]) -> _Ready:
        name = launch.function or self._name
        if any(isinstance(a, np.void) for a in given):
            check_structures(self._binary.symbol(name), self._cubin, {f"parameter {i}": a for i, a in enumerate(given)})
            given = [as_passed(a) for a in given]
        at = addresses(given) if launch.maps else ()
        return _Ready(self._functions[name], launch, (*given, *(encoded(m, at[m.argument]) for m in launch.maps)))

    def _fill(self, constants: Sequence[Constant]) -> None:
        """Copies to constant memory, and poisons the bytes behind it.

        Raises:
            TrialFailure: definition_failed, if a variable is missing or too small.
        """
        specs = {c.name: array_constant(c.values.dtype, *c.values.shape) for c in constants}
        declared = constant_bytes(self._cubin)
        check_constants(self._name, specs, declared)
        runtime, module = cupy.cuda.runtime, self._functions[self._name].raw.kernel.module
        with _faults(self._name):
            runtime.deviceSynchronize()  # earlier launches may still read it
            contents = {c.name: np.ascontiguousarray(c.values) for c in constants}
            if BEYOND_CONSTANTS in declared:
                contents[BEYOND_CONSTANTS] = np.full(declared[BEYOND_CONSTANTS], BEYOND_PATTERN, np.uint8)
            for name, values in contents.items():
                address = module.get_global_var(name)
                runtime.memcpy(address, values.ctypes.data, values.nbytes, runtime.memcpyHostToDevice)


def _enqueue(ready: Sequence[_Ready]) -> None:
    for function, launch, pointers in ready:
        function.enqueue(launch, pointers)


class CudaSession:
    """The hardware behind ``cuda:<index>``."""

    check_builds = ("cubin",)
    timed_build = "cubin"

    def __init__(self, index: int, device: Device) -> None:
        self.device, self._index = device, index
        cupy.cuda.Device(index).use()
        source = files(__package__).joinpath("probes.cu").read_text()
        cubin = cached_cubin(cache_dir("cubin"), source, "spin", device.arch)
        probes = cupy.RawModule(path=str(cubin.path))
        self.spin = probes.get_function("spin")
        self._read_all = probes.get_function("read_all")
        self._multiply_add = probes.get_function("multiply_add")
        self._n_flush = 2 * max(device.l2_bytes, 1 << 20) // 16
        self._flush = cupy.zeros(self._n_flush * 4, dtype=cupy.uint32)
        self._sink = cupy.zeros(1, dtype=cupy.float32)
        self.keep_bytes = int(cupy.cuda.Device(index).mem_info[1]) // 4
        self.comparer = Comparer(device, self.keep_bytes)
        self.guarded = _guarded(index)
        self.meter = Meter(cupy.cuda.Device(index).pci_bus_id)

    def load(self, binary: Binary, build: str) -> CudaFunction:
        with _faults(binary.kernel):
            return CudaFunction(self, binary)

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], *, written: bool, align: int = TIMED_ALIGN
    ) -> CudaBuffer:
        try:
            return CudaBuffer(self, shape, dtype, align)
        except (cupy.cuda.memory.OutOfMemoryError, MemoryError) as error:
            raise TrialFailure(Status.RESOURCES, f"{name} does not fit the device's memory: {error}") from error

    def memory(self, n_bytes: int) -> tuple[Mapping | None, Any]:
        """Returns the mapping, which the caller gives back, and an array of at least ``n_bytes`` in it.

        Without guarded memory the mapping is None, and the array has room for canaries on both sides.
        """
        if self.guarded is None:
            return None, cupy.empty(n_bytes + 2 * PLAIN_GUARD_BYTES, dtype=cupy.uint8)
        try:
            mapping = self.guarded.take(n_bytes)
        except MemoryError:
            cupy.get_default_memory_pool().free_all_blocks()  # memory that CuPy keeps for its own arrays
            mapping = self.guarded.take(n_bytes)
        owned = cupy.cuda.UnownedMemory(mapping.address, mapping.n_bytes, mapping, self._index)
        return mapping, cupy.ndarray((mapping.n_bytes,), cupy.uint8, memptr=cupy.cuda.MemoryPointer(owned, 0))

    def flush_l2(self) -> None:
        blocks = 8 * max(1, self.device.n_multiprocessors)
        self._read_all((blocks,), (256,), (self._flush, np.uint64(self._n_flush), self._sink))

    def clock_hz(self) -> float:
        passed = cupy.zeros(2, dtype=cupy.uint64)
        self.spin((1,), (1,), (passed, np.int64(SPIN_CYCLES)))
        cycles, ns = passed.get()
        return 1e9 * float(cycles) / max(1.0, float(ns))

    def release(self) -> None:
        self.comparer.release()
        if self.guarded is not None:
            self.guarded.release_waiting()
        cupy.get_default_memory_pool().free_all_blocks()

    def ceilings(self) -> Ceilings:
        """Measures a copy of 1 GiB, multiply-adds from registers, and matrix products.

        Each is the best of several runs, which raise the clock first.
        """
        n_bytes, n_steps = 1 << 30, 4096
        a, b = cupy.zeros(n_bytes, cupy.uint8), cupy.zeros(n_bytes, cupy.uint8)
        blocks, threads = 32 * max(1, self.device.n_multiprocessors), 256

        def copy() -> None:
            cupy.cuda.runtime.memcpyAsync(b.data.ptr, a.data.ptr, n_bytes, cupy.cuda.runtime.memcpyDeviceToDevice, 0)

        def multiply_add() -> None:
            self._multiply_add((blocks,), (threads,), (self._sink, np.int32(n_steps), np.float32(0.5)))

        copy_s, fma_s = _best_of(20, copy), _best_of(20, multiply_add)
        flops = 2.0 * 16 * n_steps * blocks * threads
        halves, bytes_ = self._tensor_ceilings()
        return Ceilings(2 * n_bytes / copy_s, flops / fma_s, halves, bytes_)

    def _tensor_ceilings(self) -> tuple[float, float]:
        """Returns operations per second on tensor cores for float16 and int8; 0 if there are none."""
        if int(self.device.arch.removeprefix("sm_")) < 80:
            return 0.0, 0.0
        by_wgmma = self.device.arch == "sm_90"
        source = files(__package__).joinpath(f"{'wgmma' if by_wgmma else 'tensor'}_probes.cu").read_text()
        n_steps, blocks, threads = 2048, 4 * max(1, self.device.n_multiprocessors), 256
        rates = []
        for name, n_k in (("multiply_halves", 16), ("multiply_bytes", 32)):
            cubin = cached_cubin(cache_dir("cubin"), source, name, self.device.arch)
            probe = cupy.RawModule(path=str(cubin.path)).get_function(name)
            arguments = (self._sink, np.int32(n_steps))
            seconds = _best_of(5, lambda probe=probe, arguments=arguments: probe((blocks,), (threads,), arguments))
            each = 64 * 64 * (threads // 128) if by_wgmma else 16 * 8 * (threads // 32)
            rates.append(2.0 * 8 * n_k * each * n_steps * blocks / seconds)
        return rates[0], rates[1]


def _guarded(index: int) -> GuardedMemory | None:
    """Returns guarded memory, or None with a warning. A process opens one session, so the warning appears once."""
    try:
        return GuardedMemory(index)
    except Unavailable as reason:
        what = f"{PLAIN_GUARD_BYTES} bytes beside each array are watched, and no more"
        logging.getLogger("autotune").warning("writes far outside of arrays may go unnoticed: %s; %s", reason, what)
        return None


def _seconds(begin: Any, end: Any) -> float:
    """Returns the seconds between two events, rounded to a picosecond: CUDA returns milliseconds as float32."""
    return round(1e-3 * float(cupy.cuda.get_elapsed_time(begin, end)), 12)


def _best_of(n: int, work: Any) -> float:
    times = []
    for _ in range(n):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(_seconds(begin, end))
    return float(min(times))


@contextmanager
def _faults(kernel: str) -> Any:
    """Turns CUDA's errors into trial failures."""
    try:
        yield
    except (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError) as error:
        refused = any(word in str(error) for word in REFUSED)
        raise TrialFailure(
            Status.RESOURCES if refused else "launch_failed", f"{kernel}: {error}", sticky=not refused
        ) from error
