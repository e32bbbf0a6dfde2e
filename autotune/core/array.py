"""Arrays of a kernel as a definition states them, and as the tensor memory accelerator copies from them."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

CONSTANT_BYTES = 65536  # size of constant memory, which all variables of a kernel share
BEYOND_CONSTANTS = "autotune_beyond_constants"  # the variable after them; no kernel reads it, and launches poison it
BEYOND_BYTES = 256
BEYOND_PATTERN = 0xFF  # NaN, or -1


@dataclass(frozen=True)
class TensorMap:
    """A tensor map: an array from which the tensor memory accelerator of sm_90 and later copies swizzled boxes.

    The kernel gets it by value, after its other arguments: ``const __grid_constant__``, 128 bytes aligned to 64.
    Elements of a box that lie outside the shape become 0. A box starts at a multiple of 16 bytes; otherwise an H200
    stops with an illegal instruction. A row may be longer than the stride to the next row. Source: PTX ISA, "Tensors";
    CUDA driver API, cuTensorMapEncodeTiled.
    """

    argument: int  # the array's position among the kernel's arguments; its address is a multiple of 16
    shape: tuple[int, ...]  # elements along each axis, fastest axis first; 1 to 5 axes
    strides: tuple[int, ...]  # bytes between neighbours along each axis but the first: multiples of 16
    box: tuple[int, ...]  # elements along each axis, at most 256; first axis: multiples of 16 bytes, at most `swizzle`
    swizzle: int = 0  # swizzle span in bytes: 32, 64 or 128, or 0 for none
    fetch: int = 128  # bytes that the L2 cache fetches together: 0, 64, 128 or 256
    element: int = 1  # bytes: 1, 2, 4 or 8


@dataclass(frozen=True)
class Array:
    """An array argument: C-contiguous, slowest axis first. Its address must be a multiple of ``align`` bytes.

    ``compared``: whether a written array is compared with the reference.
    ``constant``: the array lies in the ``__constant__`` variable of its name, and is not an argument of the function.
    ``longer``: (axis, scalar) of an array that may be a part of a longer one along that axis. The scalar argument of
    that name then gives the length of the whole array, which is the pitch of all axes before this one.
    """

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    read: bool = True
    written: bool = False
    align: int = 16
    longer: tuple[int, str] | None = dataclasses.field(default=None, repr=False)
    compared: bool = dataclasses.field(default=True, repr=False)
    constant: bool = dataclasses.field(default=False, repr=False)

    @property
    def is_compared(self) -> bool:
        """Whether it is an output that a reference is compared with."""
        return self.written and self.compared

    @property
    def n_bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def whole_length(self, strides: Sequence[int]) -> int | None:
        """Returns the length along the ``longer`` axis of the whole array, from the strides of this part of it.

        0: the length makes no difference, since no axis comes before this one. None: the strides are neither those of a
        part nor C-contiguous.
        """
        axis = self.longer[0] if self.longer else -1
        length, of_axis, expected = 0, 0, self.dtype.itemsize
        for i in reversed(range(len(self.shape))):
            if i < axis and self.shape[i] > 1 and not length:
                length, remainder = divmod(strides[i], of_axis)
                if remainder or length < self.shape[axis]:
                    return None
                expected = strides[i]
            elif self.shape[i] > 1 and strides[i] != expected:
                return None
            if i == axis:
                of_axis = expected
            expected *= self.shape[i]
        return length


def array_in(dtype: Any, *shape: int, align: int = 16, longer: tuple[int, str] | None = None) -> Array:
    """Declares an input: the kernel reads it and never writes it."""
    return Array(np.dtype(dtype), shape, read=True, written=False, align=align, longer=longer)


def array_constant(dtype: Any, *shape: int) -> Array:
    """Declares an input in constant memory: the source declares ``__constant__ float <name>[..]``, at least as large.

    All constant arrays of a kernel share CONSTANT_BYTES. They suit data that all threads of a warp read at one index.
    """
    return Array(np.dtype(dtype), shape, align=1, constant=True)


def array_out(dtype: Any, *shape: int, align: int = 16, longer: tuple[int, str] | None = None) -> Array:
    """Declares an output: the kernel writes every element and reads none."""
    return Array(np.dtype(dtype), shape, read=False, written=True, align=align, longer=longer)


def array_inout(dtype: Any, *shape: int, align: int = 16, longer: tuple[int, str] | None = None) -> Array:
    """Declares an accumulator: the kernel reads it and writes it."""
    return Array(np.dtype(dtype), shape, read=True, written=True, align=align, longer=longer)


def array_workspace(dtype: Any, *shape: int, align: int = 256) -> Array:
    """Declares an array that a ``Launch`` needs only while it runs: it is allocated there, with arbitrary content."""
    return Array(np.dtype(dtype), shape, read=False, written=True, align=align, compared=False)


def array_scratch(dtype: Any, *shape: int, align: int = 16) -> Array:
    """Declares an array that the kernel reads and writes, and that is not compared with the reference."""
    return Array(np.dtype(dtype), shape, read=True, written=True, align=align, compared=False)
