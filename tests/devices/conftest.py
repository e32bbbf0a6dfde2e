"""Devices, opened once for the whole run."""

from collections.abc import Iterator

import pytest

from autotune.devices import find_device

from .bench import Bench

_benches: dict[str, Bench] = {}


def _bench(name: str) -> Bench:
    if name not in _benches:
        _benches[name] = Bench(find_device(name))
    return _benches[name]


@pytest.fixture(params=["host", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Each device in turn."""
    yield _bench(request.param)


@pytest.fixture
def host() -> Bench:
    return _bench("host")
