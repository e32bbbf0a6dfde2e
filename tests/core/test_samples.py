"""Packed samples, read back by NumPy."""

import numpy as np
import pytest

from autotune import unpack_samples

from ..kernels.common import packed_bits

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("bits", range(2, 17))
def test_what_was_packed_is_read_back(bits: int) -> None:
    rng = np.random.default_rng(bits)
    samples = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (1, 101))
    row = packed_bits(samples, bits)[0]
    np.testing.assert_array_equal(unpack_samples(row, bits, 0, 101), samples[0])
    np.testing.assert_array_equal(unpack_samples(row, bits, 16, 50), samples[0, 16:66])
    np.testing.assert_array_equal(unpack_samples(row, bits, 13, 50), samples[0, 13:63])
    past_the_end = unpack_samples(row, bits, 96, 24)[8:]
    np.testing.assert_array_equal(past_the_end, np.zeros(16))
