"""Packed samples are unpacked as they were, and lie as their binary digits do."""

import numpy as np
import pytest

from autotune import unpack_samples
from autotune.engines.files.packing import pack_samples

from ...kernels.common import packed_bits


@pytest.mark.parametrize("bits", range(2, 17))
@pytest.mark.parametrize("n", [0, 1, 7, 8, 1003])
def test_packed_samples_are_their_binary_digits(bits: int, n: int) -> None:
    samples = np.random.default_rng(bits).integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (2, n)).astype(np.int16)
    packed = pack_samples(samples, bits)
    assert packed.shape == (2, -(-n * bits // 8)) and np.array_equal(packed, packed_bits(samples, bits))
    assert all(np.array_equal(unpack_samples(row, bits, 0, n), each) for row, each in zip(packed, samples, strict=True))


def test_a_part_of_an_array_is_packed_alike() -> None:
    samples = np.random.default_rng(0).integers(-512, 512, (3, 400)).astype(np.int16)
    assert np.array_equal(pack_samples(samples[:, 3:102], 10), pack_samples(samples[:, 3:102].copy(), 10))
