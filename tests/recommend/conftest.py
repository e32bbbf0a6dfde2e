"""Linear algebra of one thread, as callers of the model hold it: other tests have the other cores."""

from collections.abc import Iterator

import pytest

from autotune.system.one_thread import one_thread


@pytest.fixture(autouse=True)
def held_to_one_thread() -> Iterator[None]:
    with one_thread():
        yield
