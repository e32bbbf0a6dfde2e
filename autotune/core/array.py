"""Arrays of a kernel as a definition states them, and as the tensor memory accelerator copies from them."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

CONSTANT_BYTES = 65536  # of constant memory, for all variables of a kernel
BEYOND_CONSTANTS = "autotune_beyond_constants"  # variable behind them, which no kernel reads: launches poison it
BEYOND_BYTES = 256
BEYOND_PATTERN = 0xFF  # NaN, or -1


@dataclass(frozen=True)
class TensorMap:
    """An array as the tensor memory accelerator of sm_90 and later copies from it: boxes of its elements, swizzled.

    The kernel gets it by value, after its other arguments: ``const __grid_constant__``, 128 bytes aligned to 64.
    Of a box, what lies outside the shape becomes 0. A box starts at a multiple of 16 bytes: an H200 stops with an
    illegal instruction otherwise. Rows may be longer than the stride to the next. Source: PTX ISA, "Tensors"; CUDA
    driver API, cuTensorMapEncodeTiled.
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
    """An array argument: C-contiguous, slowest axis first. ``align``: bytes its address must be a multiple of.

    ``compared``: whether the reference says what an array that is written must hold.
    ``constant``: the ``__constant__`` variable of that name holds it; it is not among the arguments of the function.
    ``longer``: (axis, scalar), of an array that may be part of one that is longer along that axis. The scalar argument
    of that name then says how long the whole one is. Everything before the axis has that pitch.
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
        """Returns how long the array is along its ``longer`` axis that this one, with these strides, is a part of.

        0: that makes no difference, since nothing is before the axis. None: the strides are neither those of a part nor
        C-contiguous.
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
    """Declares an input, which is read and never written."""
    return Array(np.dtype(dtype), shape, read=True, written=False, align=align, longer=longer)


def array_constant(dtype: Any, *shape: int) -> Array:
    """Declares an input in constant memory: the source says ``__constant__ float <name>[..]``, at least as large.

    A kernel has CONSTANT_BYTES for all of them. They suit what all threads of a warp read at the same index.
    """
    return Array(np.dtype(dtype), shape, align=1, constant=True)


def array_out(dtype: Any, *shape: int, align: int = 16, longer: tuple[int, str] | None = None) -> Array:
    """Declares an output: every element is written, none is read."""
    return Array(np.dtype(dtype), shape, read=False, written=True, align=align, longer=longer)


def array_inout(dtype: Any, *shape: int, align: int = 16, longer: tuple[int, str] | None = None) -> Array:
    """Declares an accumulator, which is read and written."""
    return Array(np.dtype(dtype), shape, read=True, written=True, align=align, longer=longer)


def array_workspace(dtype: Any, *shape: int, align: int = 256) -> Array:
    """Declares an array that a ``Launch`` needs only while it runs: allocated for it, and begins with any content."""
    return Array(np.dtype(dtype), shape, read=False, written=True, align=align, compared=False)


def array_scratch(dtype: Any, *shape: int, align: int = 16) -> Array:
    """Declares an array that is read and written, and whose content nobody compares with a reference."""
    return Array(np.dtype(dtype), shape, read=True, written=True, align=align, compared=False)
