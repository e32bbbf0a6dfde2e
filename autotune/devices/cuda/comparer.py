"""Compares outputs with their references on the GPU, with one launch and one read-back each.

A wrong output is compared again by NumPy on the host, which finds the place and the size of the error. The kernels are
compiled like variants. CuPy's own kernels are not used: they would need seconds of compiling at their first use.
"""

from collections import OrderedDict
from dataclasses import replace
from importlib.resources import files
from typing import Any

import cupy
import numpy as np

from ...core.definition import Device, Tolerance
from ...runtime.comparison import INTEGERS, OutputComparison, compare_arrays, fits, nibbles
from ...runtime.nvrtc import cached_cubin
from ...system.cache import cache_dir

KEEP_FROM_BYTES = 1 << 20  # references from this size on stay on the device
FOUND = np.dtype([("n_bad", np.uint64), ("max_error", np.float64), ("sum_error2", np.float64)])
KINDS = {  # type of an output -> CUDA's type of its numbers, and numbers per element
    **{"float16": ("Half", 1), "float32": ("float", 1), "float64": ("double", 1)},
    **{"complex64": ("float", 2), "complex128": ("double", 2)},
    **{"int8": ("signed char", 1), "uint8": ("unsigned char", 1), "int16": ("short", 1)},
    **{"uint16": ("unsigned short", 1), "int32": ("int", 1), "uint32": ("unsigned", 1)},  # a double holds each value
}


class Comparer:
    """Compares arrays on one device, and keeps up to ``keep_bytes`` of large references there."""

    def __init__(self, device: Device, keep_bytes: int) -> None:
        self._keep_bytes, self._arch = keep_bytes, device.arch
        self._source = files(__package__).joinpath("compare.cu").read_text()
        module = self._module(self._source, "differ")
        self._differ = module.get_function("differ")
        self._nibbles = module.get_function("nibbles")
        self._changed = module.get_function("changed")
        self._modules: dict[str, Any] = {}  # type of output -> its module, loaded on first use
        self._blocks = 8 * max(1, device.n_multiprocessors)
        self._found = cupy.zeros(FOUND.itemsize, cupy.uint8)
        self._kept: OrderedDict[str, tuple[Any, float]] = OrderedDict()

    def compare(self, got: Any, want: np.ndarray, tolerance: Tolerance, key: str) -> OutputComparison:
        """Compares ``got``, on the device, with ``want``; ``key`` names the reference, which is copied only once."""
        if got.size == 0:
            return OutputComparison(0, 0, 0.0, 0.0)
        if tolerance.nibbles:
            parts = cupy.empty(2 * got.size, cupy.int8)
            self._nibbles((self._blocks,), (256,), (got, np.uint64(got.size), parts))
            found = self.compare(parts, nibbles(want).ravel(), replace(tolerance, nibbles=False), f"{key} nibbles")
            return self._closely(got, want, tolerance) if found.n_bad else found
        both_integers = want.dtype.kind in INTEGERS and got.dtype.kind in INTEGERS
        if tolerance == Tolerance() and (want.dtype == got.dtype or both_integers):
            there, _ = self._on_device(want, got.dtype, key)
            found = self._run(self._differ, _aligned(got), there, np.uint64(got.nbytes))
            return self._closely(got, want, tolerance) if found["n_bad"] else OutputComparison(0, got.size, 0.0, 0.0)
        if got.dtype.name not in KINDS:  # integers of 64 bits with a tolerance
            return self._closely(got, want, tolerance)
        function = self._function("compare_like" if want.dtype == got.dtype else "compare", got.dtype)
        wide = np.dtype(np.complex128 if got.dtype.kind == "c" else np.float64)
        there, rms = self._on_device(want, got.dtype if want.dtype == got.dtype else wide, key)
        limits = np.float64(tolerance.atol + tolerance.of_rms * rms), np.float64(tolerance.rtol)
        found = self._run(function, got, there, np.uint64(got.size), *limits)
        if found["n_bad"]:
            return self._closely(got, want, tolerance)
        size = rms or 1.0
        rms_error = float(np.sqrt(found["sum_error2"] / got.size)) / size
        return OutputComparison(0, got.size, float(found["max_error"]) / size, rms_error)

    def n_changed(self, memory: Any, start: int, end: int, canary: int) -> int:
        """Returns how many 16-byte pieces of canaries in ``memory`` have changed.

        The array between ``start`` and ``end`` has no canaries.
        """
        words = np.uint32(0x01010101 * canary)
        found = self._run(self._changed, memory, np.uint64(start), np.uint64(end), np.uint64(memory.nbytes), words)
        return int(found["n_bad"])

    def release(self) -> None:
        """Frees the references on the device."""
        self._kept.clear()

    def _function(self, name: str, dtype: np.dtype[np.generic]) -> Any:
        """Returns ``compare`` or ``compare_like`` for a type of output."""
        kind = dtype.name
        if kind not in self._modules:
            number, n_parts = KINDS[kind]
            source = f"{self._source}\nCOMPARE({kind}, {number}, {n_parts})\n"
            self._modules[kind] = self._module(source, f"compare_{kind}")
        return self._modules[kind].get_function(f"{name}_{kind}")

    def _module(self, source: str, name: str) -> Any:
        return cupy.RawModule(path=str(cached_cubin(cache_dir("cubin"), source, name, self._arch).path))

    def _closely(self, got: Any, want: np.ndarray, tolerance: Tolerance) -> OutputComparison:
        return compare_arrays(got.get(), np.asarray(want), tolerance)

    def _run(self, function: Any, *arguments: object) -> Any:
        self._found.data.memset(0, FOUND.itemsize)
        function((self._blocks,), (256,), (*arguments, self._found))
        return self._found.get().view(FOUND)[0]

    def _on_device(self, reference: np.ndarray, dtype: np.dtype[np.generic], key: str) -> tuple[Any, float]:
        """Returns the reference on the device, as ``dtype``, which must hold it exactly, and its rms."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if reference.dtype != dtype:
            if not fits(reference, dtype):
                raise ValueError(f"{key}: the reference has values that {dtype} cannot hold")
            reference = reference.astype(dtype)
        there, rms = cupy.asarray(np.ascontiguousarray(reference)), 0.0
        if reference.dtype.name in KINDS:  # rms is the distance from zero
            zero = cupy.zeros_like(there)
            nothing = np.float64(np.inf), np.float64(0.0)
            found = self._run(
                self._function("compare_like", reference.dtype), zero, there, np.uint64(there.size), *nothing
            )
            rms = float(np.sqrt(found["sum_error2"] / there.size))
        entry = there, rms
        if reference.nbytes >= KEEP_FROM_BYTES:
            self._kept[key] = entry
            while len(self._kept) > 1 and sum(array.nbytes for array, _ in self._kept.values()) > self._keep_bytes:
                self._kept.popitem(last=False)
        return entry


def _aligned(array: Any) -> Any:
    """Returns ``array``, or a copy aligned to 16 bytes."""
    if array.data.ptr % 16 == 0:
        return array
    copy = cupy.empty(array.nbytes, cupy.uint8)
    copy.data.copy_from_device(array.data, array.nbytes)
    return copy
