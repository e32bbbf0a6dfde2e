"""What the tests of kernels that only a GPU runs share; and which cases are left to runs of a kernel's own file.

Two in three mutants and variants are: all of them take long. ``-m thorough`` runs these.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from autotune.devices import Target, find_device
from autotune.trial.bench import Bench

MANY = ("mutants", "any_problem", "variants", "host_agrees", "a_part_compiles", "a_part_does_not")  # in names of tests with many cases, a compile for each


@pytest.fixture(scope="module")
def gpu() -> Target:
    return find_device("cuda:0")


@pytest.fixture(scope="module")
def gpu_bench(gpu: Target) -> Iterator[Bench]:
    with Bench(gpu, compile_processes=1) as opened:
        yield opened


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        name = getattr(item, "originalname", "")
        is_one = "kernels" in item.path.parts and any(word in name for word in MANY)
        if is_one and not any(item.get_closest_marker(marker) for marker in ("quick", "gpu")):
            seen[str(item.path), name] += 1
            if seen[str(item.path), name] % 3 != 1:
                item.add_marker("thorough")
