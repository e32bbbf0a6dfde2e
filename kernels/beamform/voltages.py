"""The mathematics of beamform's reference: voltages, sums before rounding, dither and rounding, in NumPy."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .problem import Problem

MAXIMUM = 127  # largest part of a beam; the smallest is its negative
POOL = (1 << 22) + 15  # random bytes that large inputs repeat: a prime, so that no stride of theirs divides it


def shape_of_voltages(problem: Problem) -> tuple[int, ...]:
    """Returns the shape of the voltages. With 4 bits, both parts share a byte."""
    parts = (2,) if problem.bits == 8 else ()
    return (problem.n_batches, problem.n_antennas, problem.n_channels, problem.n_times, 2, *parts)


def drawn_voltages(problem: Problem, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws nibbles of all values; or noise of 16 rms, in which one part in 32 has any value, and one in 64 is -128."""
    n = min(int(np.prod(shape, dtype=np.int64)), POOL)
    if problem.bits == 4:
        return np.resize(rng.integers(-128, 128, n, dtype=np.int8), shape)
    drawn = np.clip(np.rint(rng.normal(0, 16, n)), -128, 127).astype(np.int8)
    kinds = rng.integers(0, 64, n)
    drawn = np.where(kinds < 2, rng.integers(-128, 128, n, dtype=np.int8), drawn)
    return np.resize(np.where(kinds == 2, np.int8(-128), drawn), shape)


def unpacked(problem: Problem, voltages: np.ndarray) -> np.ndarray:
    """Returns int8 [.., 2], (re, im)."""
    if problem.bits == 8:
        return voltages
    low, high = voltages << 4 >> 4, voltages >> 4
    return np.stack([low, high] if problem.nibbles == "real_low" else [high, low], axis=-1)


def weights_of(problem: Problem, inputs: Mapping[str, Any], channel: int) -> np.ndarray:
    """Returns W of one channel: complex128 [n_beams, n_antennas, 2]; a beam of one polarisation has zeros for the
    other.
    """
    weights = inputs["weights"].astype(np.complex128)
    if not problem.mixes:
        pols = inputs["pols"][:, np.newaxis, np.newaxis] == np.arange(2)
        weights = weights[..., np.newaxis] * pols
    half_turns = inputs["delays"].astype(np.float64) * (problem.first_channel + channel - problem.all_channels / 2)
    turns = np.exp(1j * np.pi * (half_turns - 2 * np.rint(half_turns / 2)))
    turns[half_turns == np.rint(half_turns)] = np.rint(turns[half_turns == np.rint(half_turns)])  # exactly +-1
    return np.asarray(weights * turns[..., np.newaxis])


def voltages_of(problem: Problem, inputs: Mapping[str, Any], batch: int, channel: int, times: Any) -> np.ndarray:
    """Returns complex128 [n_antennas 2, times], polarisations fastest; those of a missing antenna are 0."""
    parts = unpacked(problem, inputs["voltages"][batch, :, channel][:, times]).astype(np.float64)
    parts[inputs["present"][batch] == 0] = 0
    x = np.ascontiguousarray(parts).view(np.complex128)[..., 0]  # [antenna, time, polarisation]
    return x.transpose(0, 2, 1).reshape(-1, x.shape[1])


def dither_of(problem: Problem, batch: int, channel: int, times: Any) -> np.ndarray | float:
    """Returns complex128 [n_beams, times], or 0 if the problem has none."""
    if not problem.dither:
        return 0.0
    of_batch = problem.first_time + batch * problem.n_times + np.arange(problem.n_times, dtype=np.int64)[times]
    return dither(problem.seed, problem.first_channel + channel, problem.n_beams, of_batch)


def beams_before_rounding(problem: Problem, inputs: Mapping[str, Any]) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yields batch, channel and the sums with their dither: complex128 [n_beams, n_times], for all that is used."""
    every = slice(None)
    for c in range(problem.n_channels):
        weights = weights_of(problem, inputs, c).reshape(problem.n_beams, -1)
        for n in problem.batches:
            yield n, c, weights @ voltages_of(problem, inputs, n, c, every) + dither_of(problem, n, c, every)


def quantised(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns int8 [.., 2], rounded to nearest even and clipped, and which samples were clipped in either part."""
    parts = np.rint(sums.view(np.float64).reshape(*sums.shape, 2))
    clipped = (np.abs(parts) > MAXIMUM).any(axis=-1)
    return np.clip(parts, -MAXIMUM, MAXIMUM).astype(np.int8), clipped


# ---------------------------------------------------------------------- dither
def mixed(words: np.ndarray) -> np.ndarray:
    """Returns a bijection of 32 bits in which each bit depends on all: the rounds of Chris Wellons' lowbias32."""
    words = (words ^ words >> 16) * np.uint32(0x7FEB352D)
    words = (words ^ words >> 15) * np.uint32(0x846CA68B)
    return np.asarray(words ^ words >> 16)


def dither(seed: int, channel: int, n_beams: int, times: np.ndarray) -> np.ndarray:
    """Returns complex128 [n_beams, times], parts in (-0.5, 0.5): a hash of seed, channel, beam and time, half of whose
    bits each part has.
    """
    beams = np.arange(n_beams, dtype=np.uint32)[:, np.newaxis]
    of_channel, of_seed = np.full((1, 1), channel, np.uint32), np.full((1, 1), seed, np.uint32)
    first = mixed(mixed(mixed(of_seed) + of_channel) + beams)
    second = mixed(mixed(mixed(of_seed ^ np.uint32(0x9E3779B9)) + beams) + of_channel)
    low, high = (times & 0xFFFFFFFF).astype(np.uint32), (times >> 32).astype(np.uint32)
    words = mixed(mixed(low + first) ^ (second + high * np.uint32(0x85EBCA6B)))
    return np.asarray(((words & 0xFFFF) + 1j * (words >> 16)) / 65536 + (2.0**-17 - 0.5) * (1 + 1j))
