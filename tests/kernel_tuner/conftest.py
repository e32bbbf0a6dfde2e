"""Processes stay from test to test, as they do from call to call of a script."""

import os
from collections.abc import Iterator

import pytest

from autotune.trial import crew


@pytest.fixture(scope="session", autouse=True)
def staying() -> Iterator[None]:
    """The name of the test, which pytest writes to the environment, is no change of the surroundings."""

    def surroundings() -> tuple[str, dict[str, str]]:
        return os.getcwd(), {name: text for name, text in os.environ.items() if name != "PYTEST_CURRENT_TEST"}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "_surroundings", surroundings)
        yield
    crew.end_staying()
