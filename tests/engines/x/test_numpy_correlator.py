"""NumPy correlates exactly: all integers of 4 and 8 bits, and sums of more spectra than a float32 holds."""

import numpy as np
import pytest

from autotune.engines.machine.host_backend import HostBackend, HostStream
from autotune.engines.x.numpy_correlator import NumpyAccumulate, NumpyCorrelate, UsedBatches
from autotune.engines.x.x_settings import XSettings
from autotune.source.registry import load_kernel

from ..stand_ins import correlate

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("seed", range(8))
def test_any_batches_of_a_chunk_are_added_exactly(seed: int) -> None:
    """Odd draws are of the lowest integers, of all batches: sums are about the largest that there can be."""
    rng = np.random.default_rng(seed)
    bits, n, c = (4, 8)[seed // 2 % 2], int(rng.integers(1, 6)), int(rng.integers(1, 70))
    length = int(rng.choice([8, 96, 520, 1032, 2048]))
    n_batches = 1 + 3000 // length
    low = -(2 ** (bits - 1))
    shape = n_batches, n, c, length, 2, 2
    parts = rng.integers(low, low + 3 if seed % 2 else -low, shape, dtype=np.int8)
    voltages = parts if bits == 8 else (parts[..., 0] & 15) | (parts[..., 1] << 4)
    first, end = (0, n_batches) if seed % 2 else sorted(rng.choice(n_batches + 1, 2, replace=False).tolist())
    accumulators = rng.integers(-(2**40), 2**40, (1, c, n * (n + 1) // 2, 4, 2))
    expected = accumulators.copy()
    correlate(parts[first:end], expected[0])
    made = NumpyCorrelate(HostBackend(), XSettings(n, c, length, 1 << 12, 5, n_batches, bits))
    arrays = {"voltages": voltages, "accumulators": accumulators}
    made(UsedBatches(first, end - first), arrays, {}, HostStream())
    assert np.array_equal(accumulators, expected)


@pytest.mark.parametrize("n_antennas", [1, 2, 7])
def test_dumps_are_those_of_the_kernel(n_antennas: int) -> None:
    kernel = load_kernel("accumulate")
    problem = kernel.problem_type(n_accumulators=1, n_channels=9, n_receivers=n_antennas)
    arrays = kernel.inputs(problem, np.random.default_rng(n_antennas))
    expected = kernel.reference(problem, **arrays)
    arrays["visibilities"] = np.full((9, n_antennas * (n_antennas + 1) // 2, 4, 2), 77, np.int32)
    NumpyAccumulate()(UsedBatches(), arrays, {}, HostStream())
    for name, values in expected.items():
        assert np.array_equal(arrays[name], values)
