"""Buffers of the host device, with canaries on both sides and inaccessible pages beyond them."""

import ctypes
import mmap
import weakref

import numpy as np

from ...core.definition import Tolerance
from ...runtime.comparison import OutputComparison, another, compare_arrays
from ..base import CANARY_BYTES, TIMED_ALIGN
from .runtime import host_runtime

# Inaccessible address space on each side: 1 GiB, or less if a limit (`ulimit -v`) allows no more.
GUARD_BYTES = (1 << 30, 1 << 24, mmap.PAGESIZE)


class HostMemory:
    """An array from the view of a launch: its address, its length, and whether the kernel may write it."""

    def __init__(self, name: str, address: int, n_bytes: int, *, written: bool) -> None:
        self.name, self.address, self.n_bytes, self.written = name, address, n_bytes, written


class HostBuffer(HostMemory):
    """An array of fixed shape and type. A wild access hits canaries (less than a page) and then faults."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        *,
        written: bool,
        align: int = TIMED_ALIGN,
    ) -> None:
        n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        align = max(align, dtype.alignment)
        n_mapped = -(-(n_bytes + align + 2 * CANARY_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE
        start, guard = _map(n_mapped)
        if not start:
            raise MemoryError(f"no memory for {name}: {n_mapped} bytes")
        self._unmap = weakref.finalize(self, host_runtime().cuda_host_unmap, start, n_mapped, guard)
        self._mapped: np.ndarray = np.ctypeslib.as_array((ctypes.c_ubyte * n_mapped).from_address(start))
        address = (start + n_mapped - CANARY_BYTES - n_bytes) // align * align
        super().__init__(name, address, n_bytes, written=written)
        self._offset = self.address - start
        self._payload = self._mapped[self._offset : self._offset + self.n_bytes]
        self._array: np.ndarray = self._payload.view(dtype).reshape(shape)
        sides = self._mapped[: self._offset], self._mapped[self._offset + self.n_bytes :]
        self._sides = [(side, _canary(len(side))) for side in sides]
        for side, canary in self._sides:
            side[:] = canary

    def write(self, data: np.ndarray) -> None:
        """Copies ``data``, of the buffer's own shape and type, into the buffer."""
        if data.shape != self._array.shape or data.dtype != self._array.dtype:
            mine = f"{self._array.dtype} {self._array.shape}"
            raise ValueError(f"{self.name} holds {mine}, cannot take {data.dtype} {data.shape}")
        self._array[...] = data

    def read(self) -> np.ndarray:
        return self._array.copy()

    def keep(self) -> None:
        self._kept = self._array.copy()

    def restore(self) -> None:
        self._array[...] = self._kept

    def poison(self, pattern: int) -> None:
        self._payload[:] = pattern

    def hold_another(self) -> None:
        self._array[...] = another(self._array)

    def damage(self) -> str | None:
        before, after = (np.flatnonzero(side != canary) for side, canary in self._sides)
        if after.size:
            return f"{self.name}: {after.size} bytes past its end were overwritten, the first at end + {after[0]}"
        if before.size:
            distance = self._offset - before[-1]
            return f"{self.name}: {before.size} bytes before its start were overwritten, the last at start - {distance}"
        return None

    def compare(self, reference: np.ndarray, tolerance: Tolerance, key: str) -> OutputComparison:
        return compare_arrays(self._array, reference, tolerance)

    def free(self) -> None:
        """Frees the memory; the buffer must not be used afterwards."""
        self._unmap()


def _canary(n: int) -> np.ndarray:
    return (np.arange(n) * 37 + 11).astype(np.uint8)  # neighbours differ


def _map(n_bytes: int) -> tuple[int, int]:
    """Returns the address of ``n_bytes`` bytes (0: no memory), and the number of inaccessible bytes on each side."""
    for guard in GUARD_BYTES:
        if start := host_runtime().cuda_host_map(n_bytes, guard):
            return int(start), guard
    return 0, 0
