"""Encodes tensor maps for the hardware, with the CUDA driver."""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.definition import TensorMap
from ..core.errors import Status, TrialFailure

N_BYTES, ALIGN = 128, 64
ELEMENTS = {1: 0, 2: 1, 4: 2, 8: 4}  # bytes -> CUtensorMapDataType of unsigned integers
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # bytes -> CUtensorMapSwizzle
FETCHES = {0: 0, 64: 1, 128: 2, 256: 3}  # bytes -> CUtensorMapL2promotion


@lru_cache(maxsize=256)
def encoded(tensor_map: TensorMap, address: int) -> Any:
    """Returns ``tensor_map`` encoded for the array at ``address``: a NumPy element of 128 bytes, passed by value.

    Raises:
        TrialFailure: resources, when the driver is older than CUDA 12 or refuses the map.
    """
    n = len(tensor_map.shape)
    raw = np.zeros(N_BYTES + ALIGN, np.uint8)
    first = -raw.ctypes.data % ALIGN
    made = raw[first : first + N_BYTES]
    status = _driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(made.ctypes.data),
        ELEMENTS[tensor_map.element],
        n,
        ctypes.c_void_p(address),
        _numbers(ctypes.c_uint64, tensor_map.shape),
        _numbers(ctypes.c_uint64, tensor_map.strides),
        _numbers(ctypes.c_uint32, tensor_map.box),
        _numbers(ctypes.c_uint32, (1,) * n),
        0,  # not interleaved
        SWIZZLES[tensor_map.swizzle],
        FETCHES[tensor_map.fetch],
        0,  # elements outside the array read as 0
    )
    if status:
        raise TrialFailure(Status.RESOURCES, f"the CUDA driver refuses {tensor_map} at {address:#x}: error {status}")
    return made.view(f"V{N_BYTES}")


def addresses(arguments: Sequence[object]) -> list[int]:
    """Returns the addresses of launch arguments that are arrays or addresses, and 0 for others."""
    found = []
    for argument in arguments:
        data = getattr(argument, "data", None)
        pointer = getattr(data, "ptr", argument if isinstance(argument, int) else 0)
        found.append(int(pointer))
    return found


def _numbers(kind: Any, values: Sequence[int]) -> Any:
    return (kind * max(1, len(values)))(*values)


@lru_cache(maxsize=1)
def _driver() -> Any:
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "cuTensorMapEncodeTiled"):
            return library
    raise TrialFailure(Status.RESOURCES, "no CUDA driver that knows tensor maps; they came with CUDA 12.0")
