"""Kinds of values that inputs are checked with beside the definition's own: large, small, tied, negative, zeros.

One array has them at a time. Floats leave the range that the definition draws, samples (integers of 8 or 16 bits) do
not, and wider integers, which may be indices, keep their values. A definition says which kinds mean nothing to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.definition import AnyKernel, Kernel, P

KINDS = ("large", "small", "tied", "negative", "zeros")
FACTOR = 1000.0  # between the definition's values and large or small ones
OF_MOST = 0.01  # large values are at most this share of the type's largest
OF_SAMPLES = (1, 2)  # bytes of integers that are samples


def kind_of(kernel: Kernel[P], problem: P, inputs: Mapping[str, object], number: int) -> tuple[str, str] | None:
    """Returns a kind and the array that gets it; None: the definition's values. Numbers that follow go through all."""
    names = [name for name in valued(kernel, problem) if isinstance(inputs.get(name), np.ndarray)]
    at = number % (len(KINDS) + 1)
    if not names or at == len(KINDS):
        return None
    kind, name = KINDS[at], names[number // (len(KINDS) + 1) % len(names)]
    return None if {kind, f"{kind} {name}"} & {*kernel.meaningless(problem)} else (kind, name)


def valued(kernel: AnyKernel, problem: object) -> Sequence[str]:
    """Returns the arrays whose values may be of other kinds."""
    arrays = kernel.arrays(problem).items()
    return [name for name, array in arrays if array.read and _has_kinds(array.dtype)]


def changed(array: np.ndarray, kind: str) -> np.ndarray | None:
    """Returns an array of the same type with values of a kind; None if it has no others of that kind."""
    flat = array.reshape(-1)
    parts = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    if not parts.size:
        return None
    values = _of_floats(parts, kind) if parts.dtype.kind == "f" else _of_samples(parts, kind)
    if values is None or np.array_equal(values, parts):
        return None
    return np.ascontiguousarray(values.astype(parts.dtype)).view(flat.dtype).reshape(array.shape)


def _has_kinds(dtype: np.dtype[np.generic]) -> bool:
    return dtype.kind in "fc" or (dtype.kind in "iu" and dtype.itemsize in OF_SAMPLES)


def _of_floats(values: np.ndarray, kind: str) -> Any:
    most = float(np.abs(values).max())
    limits = np.finfo(values.dtype)
    match kind:
        case "large":
            factor = min(FACTOR, OF_MOST * float(limits.max) / most) if most else 1.0
            return values * factor if factor > 1 else None
        case "small":
            least = float(np.abs(values[values != 0]).min()) if most else 1.0
            factor = min(FACTOR, least / float(limits.tiny))  # none is denormal
            return values / factor if factor > 1 else None
        case "tied":  # halves, quarters and eighths of odd numbers among them
            return np.rint(8 * values) / np.where(np.arange(values.size) % 2, 8, 2)
        case "negative":
            return -np.abs(values)
    return _with_zeros(values)


def _of_samples(values: np.ndarray, kind: str) -> Any:
    low, high = int(values.min()), int(values.max())
    match kind:
        case "large":
            return np.where(np.arange(values.size) % 2, high, low)
        case "small":
            return np.clip(values, max(low, -1), min(high, 1)) if low <= 1 and high >= -1 else None
        case "tied":
            return np.clip(values // 2 * 2 + 1, low, high)
        case "negative":
            return np.clip(-np.abs(values.astype(np.int64)), low, high) if low < 0 else None
    return _with_zeros(values) if low <= 0 <= high else None


def _with_zeros(values: np.ndarray) -> np.ndarray:
    return np.where(np.arange(values.size) % 2, 0, values)
