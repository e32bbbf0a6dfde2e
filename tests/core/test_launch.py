"""Which function a launch means: a plain name, or a name expression of CUDA C++."""

import pytest

from autotune import Launch
from autotune.core.launch import function_named, last_name, with_positions

ONE = Launch((1, 1, 1), (32, 1, 1))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("scale", "scale"),
        ("fir::scale", "scale"),
        ("scale<float, 64>", "scale"),
        ("::fir::scale< fir::Pair<int>, (3 > 2) >", "scale"),
        ("static_cast<void (*)(float*, fir::Pair<int>)>(fir::scale<float>)", "scale"),
        ("static_cast<void (*)()>( scale )", "scale"),
    ],
)
def test_an_expression_ends_in_a_name(function: str, name: str) -> None:
    assert last_name(function) == name


def test_one_of_the_functions_bears_the_kernels_name() -> None:
    last = Launch((1, 1, 1), (32, 1, 1), function="fir::scale<int>")
    assert function_named("scale", ONE) == "scale"
    assert function_named("scale", Launch(ONE.grid, ONE.block, function="first<3>", then=last)) == "fir::scale<int>"


def test_an_instance_alone_takes_what_the_kernel_is_called_with() -> None:
    launch = Launch(ONE.grid, ONE.block, function="fir::scale<float, 64>")
    assert with_positions("scale", launch, ("y", "n")) == (launch, None)
    found, wrong = with_positions("other", launch, ("y", "n"))
    assert found == launch and wrong == "has no launch of other(), whose name is the kernel's; one must be"
