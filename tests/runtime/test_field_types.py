"""Fields of a problem are checked by the types of its defaults; NumPy's numbers are numbers."""

from dataclasses import dataclass

import numpy as np
import pytest

from autotune import UsageError
from autotune.runtime.field_types import check_field_types


@dataclass(frozen=True)
class Sizes:
    n: int = 8
    rate: float = 2.5
    is_turned: bool = False
    kind: str = "float32"
    shape: tuple[int, ...] = (1, 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n", value) for value in (0, -5, np.int64(3), np.uint8(2))),
        *(("rate", value) for value in (1, 2.0, np.float32(3), np.int16(4))),
        *(("is_turned", value) for value in (True, np.bool_(False))),
        *(("kind", "x"), ("shape", (3,)), ("unknown", "anything")),
    ],
)
def test_values_of_the_field_s_type_are_taken(name: str, value: object) -> None:
    check_field_types("k", {name: value}, Sizes())


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("n", "3", "k: n='3' is of type str, must be a whole number, such as n=8"),
        ("n", 3.0, "n=3.0 is of type float, must be a whole number"),
        ("n", True, "n=True is of type bool, must be a whole number"),
        ("rate", "2.5", "must be a number, such as rate=2.5"),
        ("rate", False, "must be a number"),
        ("is_turned", 1, "must be True or False, such as is_turned=False"),
        ("kind", 32, "kind=32 is of type int, must be text, such as kind='float32'"),
    ],
)
def test_others_are_refused_in_one_line(name: str, value: object, says: str) -> None:
    with pytest.raises(UsageError, match=r"^k: ") as refused:
        check_field_types("k", {name: value}, Sizes())
    assert says in str(refused.value) and "\n" not in str(refused.value)
