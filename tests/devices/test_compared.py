"""Outputs compared with references on each device: what NumPy finds, of every type and with every tolerance."""

from typing import Any

import numpy as np
import pytest

from autotune.core.definition import Tolerance
from autotune.runtime.comparison import compare_arrays

from .bench import Bench

N = 70_001
TOLERANCES = {"exact": Tolerance(), "absolute": Tolerance(atol=1), "of rms": Tolerance(rtol=1e-6, of_rms=1e-5)}
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float16", "float32", "float64", "complex64")


@pytest.mark.parametrize("tolerance", TOLERANCES.values(), ids=TOLERANCES)
@pytest.mark.parametrize("dtype", TYPES)
def test_any_type_is_compared_as_numpy_does(bench: Bench, dtype: str, tolerance: Tolerance) -> None:
    rng, kind = np.random.default_rng(3), np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        want: Any = rng.integers(info.min, info.max, N, kind, endpoint=True)
        moved = np.clip(want[::7].astype(object) + rng.integers(-3, 4, len(want[::7])), info.min, info.max).astype(kind)
    else:
        want = rng.normal(size=N).astype(kind)
        moved = (want[::7] * 1.5).astype(kind)
    got = want.copy()
    buffer: Any = bench.session.buffer("got", (N,), kind, written=True)
    try:
        for changed in (want[::7], moved):
            got[::7] = changed
            buffer.write(got)
            found, expected = (
                buffer.compare(want, tolerance, f"{dtype} {tolerance}"),
                compare_arrays(got, want, tolerance),
            )
            assert (found.n_bad, found.n_total, found.first_bad) == (expected.n_bad, N, expected.first_bad)
            assert found.max_error == pytest.approx(expected.max_error, rel=1e-6)
            assert found.rms_error == pytest.approx(expected.rms_error, rel=1e-6)
    finally:
        buffer.free()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_nibbles_are_compared_each(bench: Bench, dtype: str) -> None:
    """-1 and 0 are one apart in each nibble; as bytes they would be up to 31 apart, or 15 in the low one."""
    rng = np.random.default_rng(4)
    parts = rng.integers(-7, 8, (N, 2))
    packed = [(both[:, 0] & 15 | both[:, 1] << 4 & 240) for both in (parts, parts - 1, np.where(parts == 3, 1, parts))]
    want, near, far = (each.astype(np.uint8).view(dtype) for each in packed)
    buffer: Any = bench.session.buffer("got", (N,), np.dtype(dtype), written=True)
    try:
        for got, n_bad in ((want, 0), (near, 0), (far, int((parts == 3).sum()))):
            buffer.write(got)
            found = buffer.compare(want, Tolerance(atol=1.0, nibbles=True), dtype)
            assert (found.n_bad, found.n_total) == (n_bad, 2 * N)
        assert found.want == 3 and found.got == 1
    finally:
        buffer.free()
