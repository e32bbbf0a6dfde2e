"""Every second mutant of a kernel is left to runs of its own file, or of ``-m thorough``: all of them take long."""

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        name = getattr(item, "originalname", "")
        if "kernels" in item.path.parts and "mutants" in name and item.get_closest_marker("quick") is None:
            seen[str(item.path), name] += 1
            if seen[str(item.path), name] % 2 == 0:
                item.add_marker("thorough")
