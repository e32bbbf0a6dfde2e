"""Random numbers without state: each block depends only on its seed, its kind and its number.

They are those of NumPy's Philox, a counter-based generator (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw,
Parallel random numbers: as easy as 1, 2, 3, SC 2011). NumPy promises the generator's bits for all of its versions, and
their turn into a distribution for one version only: machines that share noise need one NumPy.
"""

from functools import lru_cache

import numpy as np

BLOCK = 1 << 14  # samples of a block, which begins at an absolute multiple
MOST_SEED = (1 << 63) - 1  # the largest integer that TOML has
GAUSSIAN, LOSSES, DITHER = 0, 1 << 16, 2 << 16  # kinds; LOSSES and DITHER have one of each stream, up to 2^16
KEPT = 64  # blocks: those of the same noise in several polarisations, and at several delays, are made once


def generator_of(seed: int, kind: int, number: int) -> np.random.Generator:
    """Returns a generator of its own for block ``number``, which may be negative, of at most 2^64 draws."""
    counter = (number % (1 << 64)) << 64  # below it are 2^64 draws of the block itself
    return np.random.Generator(np.random.Philox(key=seed | kind << 64, counter=counter))


@lru_cache(KEPT)
def gaussian_block(seed: int, number: int) -> np.ndarray:
    """Returns white Gaussian noise of rms 1, from sample ``number`` BLOCK on: float64 [BLOCK], read-only."""
    noise = generator_of(seed, GAUSSIAN, number).standard_normal(BLOCK)
    noise.flags.writeable = False
    return noise


def dither_block(seed: int, pol: int, number: int) -> np.ndarray:
    """Returns the dither of a polarisation, uniform in [-0.5, 0.5): float64 [BLOCK]."""
    return generator_of(seed, DITHER + pol, number).random(BLOCK) - 0.5
