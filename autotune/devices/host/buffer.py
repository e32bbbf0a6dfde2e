"""Buffers of the host device: canaries on both sides, and beyond them pages that may not be touched."""

import ctypes
import mmap
import weakref
from typing import Any

import numpy as np

from ...definition import Tolerance
from ..base import Comparison
from ..compare import compare
from .runtime import runtime

CANARY_BYTES = 256  # at least, on each side
ALIGNMENT = 256  # of the first element, as cudaMalloc gives


class HostBuffer:
    """An array of fixed shape and type. A wild access past its end meets at most 511 bytes of canary, then a fault."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool) -> None:
        self.name = name
        self.written = written
        self.n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        padded = -(-self.n_bytes // ALIGNMENT) * ALIGNMENT
        n_mapped = -(-(padded + 2 * CANARY_BYTES) // mmap.PAGESIZE) * mmap.PAGESIZE
        start = runtime().cuda_host_map(n_mapped)
        if not start:
            raise MemoryError(f"no memory for {name}: {n_mapped} bytes")
        self._unmap = weakref.finalize(self, runtime().cuda_host_unmap, start, n_mapped)
        self._mapped: np.ndarray = np.ctypeslib.as_array((ctypes.c_ubyte * n_mapped).from_address(start))
        self._offset = n_mapped - CANARY_BYTES - padded
        self.address = start + self._offset
        self._payload = self._mapped[self._offset : self._offset + self.n_bytes]
        self._array: np.ndarray = self._payload.view(dtype).reshape(shape)
        self._canary = (np.arange(n_mapped) * 37 + 11).astype(np.uint8)  # no two neighbours alike
        self._before()[:] = self._canary[: self._offset]
        self._after()[:] = self._canary[self._offset + self.n_bytes :]

    def write(self, data: np.ndarray) -> None:
        """Fill with ``data``, of the buffer's own shape and type."""
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

    def damage(self) -> str | None:
        before = np.flatnonzero(self._before() != self._canary[: self._offset])
        after = np.flatnonzero(self._after() != self._canary[self._offset + self.n_bytes :])
        if after.size:
            return f"{self.name}: {after.size} bytes past its end were overwritten, the first at end + {after[0]}"
        if before.size:
            distance = self._offset - before[-1]
            return f"{self.name}: {before.size} bytes before its start were overwritten, the last at start - {distance}"
        return None

    def compare(self, reference: np.ndarray, tolerance: Tolerance, key: str) -> Comparison:
        return compare(self._array, reference, tolerance)

    def free(self) -> None:
        """Give the memory back; the buffer must not be used after."""
        self._unmap()

    def _before(self) -> np.ndarray:
        return self._mapped[: self._offset]

    def _after(self) -> np.ndarray:
        return self._mapped[self._offset + self.n_bytes :]
