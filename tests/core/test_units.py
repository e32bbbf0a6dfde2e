"""Texts for people."""

import pytest

from autotune.core.units import counted


@pytest.mark.parametrize(("n", "text"), [(0, "0 sweeps"), (1, "1 sweep"), (2, "2 sweeps")])
def test_only_one_thing_is_singular(n: int, text: str) -> None:
    assert counted(n, "sweep") == text
