"""What the tests of kernels that only a GPU runs share."""

from collections.abc import Iterator

import pytest

from autotune.devices import Target, find_device
from autotune.trial.bench import Bench


@pytest.fixture(scope="module")
def gpu() -> Target:
    return find_device("cuda:0")


@pytest.fixture(scope="module")
def gpu_bench(gpu: Target) -> Iterator[Bench]:
    with Bench(gpu, compile_processes=1) as opened:
        yield opened
