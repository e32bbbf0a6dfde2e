"""Structures by value: NumPy's layout is CUDA's, or is refused with the field and what to do."""

import inspect
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.core.structures import check_layout
from autotune.source.registry import load_kernel

from ..conftest import DEFINITIONS

pytestmark = pytest.mark.quick

INNER = np.dtype([("z", "c8"), ("n", "i4")], align=True)


def dtype(*fields: Any) -> np.dtype[Any]:
    return np.dtype(list(fields), align=True)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (dtype(("n", "i4"), ("scale", "f8"), ("taps", "f4", (3, 2)), ("on", "?"), ("half", "f2")), None),
        (dtype(("z", "c8"), ("n", "i4"), ("unused", "i4")), None),
        (np.dtype([("n", "i4"), ("scale", "f4")]), "without align=True, .* make it of"),
        (
            dtype(("n", "i4"), ("z", "c8"), ("d", "f8")),
            "field z of complex64, which begins at byte 4, .* multiple of 8",
        ),
        (dtype(("z", "c8"), ("n", "i4")), "all of it in 12 bytes, in CUDA a multiple of 8"),
        (dtype(("inner", INNER), ("m", "i4")), "inner in 12 bytes"),
        (dtype(("any", object)), "field any of object, which CUDA has not"),
        (dtype(("inner", dtype(("n", ">i4")))), "inner.n in the other byte order; use int32"),
        (dtype(("g", np.longdouble)), "which CUDA has not"),
    ],
)
def test_only_layouts_of_cuda_are_passed(given: np.dtype[Any], why: str | None) -> None:
    found = check_layout(given)
    if why is None:
        assert found is None
    else:
        with pytest.raises(AssertionError, match=why):
            raise AssertionError(found)


def test_a_definition_with_a_packed_structure_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load_kernel(str(DEFINITIONS / "saxpy.py"))
    inputs = {"scale": 1.0, "offset": 2.0}
    assert kernel.scalars(kernel.tuned[0], inputs)["params"].tolist() == (1.0, 2.0, 1000)
    packed = np.dtype([("scale", "f4"), ("offset", "f8"), ("n", "i4")])
    monkeypatch.setitem(inspect.unwrap(type(kernel).scalars).__globals__, "PARAMS", packed)
    with pytest.raises(UsageError, match=r"saxpy.py:\d+: saxpy.scalars\(\) returns 'params', which is .* align=True"):
        kernel.scalars(kernel.tuned[0], inputs)
