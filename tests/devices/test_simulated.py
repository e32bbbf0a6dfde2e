"""The simulated device: a formula computes nothing, so nothing is wrong, whatever a kernel's arrays are like."""

from pathlib import Path

import pytest

import autotune
from autotune.devices import find_device
from autotune.source.registry import all_kernels
from autotune.sweep.request import problem_on


@pytest.mark.parametrize("name", sorted(all_kernels()))
def test_a_sweep_of_every_kernel_finds_a_winner(name: str, tmp_path: Path) -> None:
    small = problem_on(all_kernels()[name], {}, find_device("host"))
    sweep = autotune.sweep(name, problem=vars(small), trials=4, device="simulated:0", results=tmp_path)
    assert sweep.best is not None and "wrong" not in sweep.counts
