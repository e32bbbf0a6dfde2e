"""A right kernel is never called wrong, and a wrong twin never right: some of the table of ``twins``."""

from pathlib import Path

import pytest

from .twins import Case, cases

EACH = 29  # of the table: coprime to the number of contents and of ways, so that each of them comes
SOME = [
    Case("float32", "add", "zeros"),
    Case("float64", "atomicAdd", "zeros"),
    Case("int32", "part", "the answer"),
    Case("int32", "atomicMax", "the answer"),
    Case("float16", "set", "nan"),
]


ON_A_GPU = [case for case in cases() if case.content != "ones"][::11]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", dict.fromkeys([*SOME, *list(cases())[::EACH]]), ids=str)
def test_twins_are_told_apart(case: Case, tmp_path: Path) -> None:
    assert case.wrongs(tmp_path) == []


@pytest.mark.gpu
@pytest.mark.parametrize("case", ON_A_GPU, ids=str)
def test_twins_are_told_apart_on_a_gpu(case: Case, tmp_path: Path) -> None:
    assert case.wrongs(tmp_path, "cuda") == []
