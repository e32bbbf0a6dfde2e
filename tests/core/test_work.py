"""The least time of a problem: by its bytes, or by its operations on the unit that is fastest at them."""

import pytest

from autotune import Work
from autotune.core.device import Ceilings
from autotune.core.work import floor_s, rates_of
from autotune.devices import find_device

pytestmark = pytest.mark.quick

H200 = Ceilings(bytes_per_s=4e12, flops_per_s=6e13, float16_per_s=8e14, int8_per_s=2e15)
OLD = Ceilings(bytes_per_s=1e12, flops_per_s=1e13)


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (Work(6e12, 4e10), 0.1),
        (Work(6e12, 4e12), 1.0),
        (Work(8e14, 4e10, "float16"), 1.0),
        (Work(8e14, 4e10, "int8"), 0.4),
    ],
)
def test_the_slower_of_bytes_and_operations_counts(work: Work, seconds: float) -> None:
    assert floor_s(work, H200) == pytest.approx(seconds)
    assert rates_of(work, H200)["efficiency"](2 * seconds) == pytest.approx(0.5)


def test_without_tensor_cores_float32_does_it() -> None:
    assert floor_s(Work(1e13, 1.0, "int8"), OLD) == pytest.approx(1.0)


def test_units_are_known() -> None:
    with pytest.raises(ValueError, match="unit=bfloat16 must be float32, float16 or int8"):
        Work(1.0, 1.0, "bfloat16")


@pytest.mark.gpu
def test_tensor_cores_are_the_fastest_unit() -> None:
    gpu = find_device("cuda:0")
    found = gpu.module.open(gpu.identifier).ceilings()
    assert found is not None and found.flops_per_s < found.float16_per_s < found.int8_per_s
