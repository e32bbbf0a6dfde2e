"""Unpacks samples fast on the host's CPU. ``core.packed_samples`` defines the packing, and is the plain way."""

from functools import cache
from math import gcd

import numpy as np

from ...core.packed_samples import unpack_samples

EXACT = 1 << 24  # float32 is exact for integers up to this one
LEAST_TOGETHER = 64  # fewer squares are not worth adding in float32
WORD = 8  # bytes: a word holds 4 samples of any width, even if they start at a later bit


def unpack_floats(row: np.ndarray, bits: int, first: int, out: np.ndarray) -> None:
    """Fills ``out`` with the samples of a packed row from ``first`` on. The row must have them all.

    Args:
        row: uint8 [n_bytes], contiguous.
        bits: bits of a sample, 2 to 16.
        out: float32 [n_samples], contiguous.
    """
    n = len(out)
    if bits in (8, 16):
        width = bits // 8
        out[...] = row[first * width : (first + n) * width].view(np.int8 if bits == 8 else ">i2")
        return
    skipped = first % 8
    n_groups = -(-(skipped + n) // 8)  # groups of 8 samples, which fill whole bytes
    packed = row[first // 8 * bits :][: n_groups * bits]
    samples = out if skipped == 0 and n == 8 * n_groups else np.empty(8 * n_groups, np.float32)
    if bits in (2, 4):
        _look_up(packed, bits, samples)
    else:
        _shift(packed, bits, samples.reshape(-1, 8))
    if samples is not out:
        out[...] = samples[skipped : skipped + n]


def sum_of_squares(samples: np.ndarray, bits: int) -> int:
    """Returns the sum of the squares of integers of ``bits`` bits, float32 and contiguous. It is exact below 2^53."""
    most = max(1, EXACT >> (2 * bits - 2))  # squares whose sum a float32 holds
    length = gcd(samples.size, most)
    if length < LEAST_TOGETHER:
        return int(np.einsum("i,i->", samples.reshape(-1), samples.reshape(-1), dtype=np.float64))
    rows = samples.reshape(-1, length)
    return int(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64))


def _look_up(packed: np.ndarray, bits: int, samples: np.ndarray) -> None:
    """Unpacks whole bytes by a table of each byte's samples. A row may end before its last group."""
    wide = samples.view(np.complex128 if bits == 2 else np.float64)
    _table(bits).take(packed, out=wide[: len(packed)], mode="clip")


@cache
def _table(bits: int) -> np.ndarray:
    samples = unpack_samples(np.arange(256, dtype=np.uint8), bits, 0, 256 * 8 // bits)
    return samples.astype(np.float32).view(np.complex128 if bits == 2 else np.float64)


def _shift(packed: np.ndarray, bits: int, samples: np.ndarray) -> None:
    """Unpacks groups of 8 samples, [n_groups, 8]. Each half of a group lies in a word; shifts extract one sample."""
    n_groups = len(samples)
    padded = np.zeros(n_groups * bits + WORD, np.uint8)
    padded[: len(packed)] = packed
    for half in range(2):
        byte, bit = divmod(4 * half * bits, 8)
        words = np.ndarray((n_groups,), ">i8", padded, byte, (bits,)).astype(np.int64)
        for i in range(4):
            samples[:, 4 * half + i] = words << (bit + i * bits) >> (64 - bits)
