"""Makes other contents of an output, as large as its results; they show whether a kernel reads the output."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .answers import WHOLE
from .array_memory import BFLOAT16, leaves

SEED = 20190131
LARGEST = 1e150  # magnitude whose square is a float64
MOST_WHOLE = 2**62


def shuffled_contents(before: np.ndarray, result: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the array's values before and after the launch, each moved by one element.

    The values stay the same, so an index stays in range. For floats, which are not indices, it yields nothing.
    """
    if all(leaf.dtype.kind in WHOLE for _, leaf in leaves(before)):
        for content in (before, result):
            moved = np.roll(content.reshape(-1), 1).reshape(content.shape)
            if (moved != content).any():
                yield moved


def beyond(result: np.ndarray) -> Iterator[np.ndarray]:
    """Yields two contents. Each element is above all results in one of them, and below all results in the other."""
    is_above = np.random.default_rng(SEED).random(result.size).reshape(result.shape) < 0.5
    for mask in (is_above, ~is_above):
        content = result.copy()
        if result.dtype.names is None:
            content[...] = _beyond(result, mask)
        else:
            for (_, place), (_, leaf) in zip(leaves(content), leaves(result), strict=True):
                whole = mask.reshape(mask.shape + (1,) * (leaf.ndim - mask.ndim))
                place[...] = _beyond(leaf, np.broadcast_to(whole, leaf.shape))
        yield content


def _beyond(result: np.ndarray, mask: np.ndarray) -> Any:
    dtype = result.dtype
    if dtype.kind == "b":
        return mask
    if dtype.kind == "c":
        return _beyond(result.real, mask) + 1j * _beyond(result.imag, ~mask)
    wide = result.astype(np.float64)
    finite = wide[np.isfinite(wide) & (np.abs(wide) < LARGEST)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    size = size or 1.0
    more = size * (1 + np.random.default_rng(SEED + 1).random(result.size).reshape(result.shape))
    if dtype.kind in WHOLE and dtype.name != BFLOAT16:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        more = np.ceil(more)
        values = np.where(mask, high + more, low - more)
        return np.clip(values, max(least, -MOST_WHOLE), min(most, MOST_WHOLE)).astype(dtype)
    values = np.where(mask, high + more, low - more)
    largest = float(np.finfo(np.float32 if dtype.name == BFLOAT16 else dtype).max)
    return np.clip(values, -0.9 * largest, 0.9 * largest).astype(dtype)
