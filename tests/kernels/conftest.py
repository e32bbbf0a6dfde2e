"""Every second mutant and variant of a kernel is left to runs of its own file, or of ``-m thorough``: all take long."""

from collections import Counter

import pytest

MANY = ("mutants", "any_problem", "variants", "host_agrees")  # in names of tests with many cases, a compile for each


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        name = getattr(item, "originalname", "")
        is_one = "kernels" in item.path.parts and any(word in name for word in MANY)
        if is_one and not any(item.get_closest_marker(marker) for marker in ("quick", "gpu")):
            seen[str(item.path), name] += 1
            if seen[str(item.path), name] % 2 == 0:
                item.add_marker("thorough")
