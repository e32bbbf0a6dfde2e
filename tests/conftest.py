"""What tests share: one cache of compiled things for the whole run, and devices by name."""

import gc
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.devices import Target, find_device

from .guarded import Tree

DEFINITIONS = Path(__file__).parent / "definitions"
FAULTY = str(DEFINITIONS / "faulty.py")
EXAMPLE = str(Path(__file__).parents[1] / "docs" / "example" / "detect.py")


def pytest_configure(config: pytest.Config) -> None:
    """Leaves out what needs a GPU, and thorough tests where no file of kernels is named, unless ``-m`` names them.

    Lets tests interrupt processes that they start.
    """
    of_kernels = any("kernels" in argument for argument in config.args)
    for marker in ("gpu", *(() if of_kernels or config.option.markexpr else ("thorough",))):
        if marker not in (chosen := config.option.markexpr):
            config.option.markexpr = f"({chosen}) and not {marker}" if chosen else f"not {marker}"
    # A shell starts what it leaves in the background with SIGINT ignored, and processes inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves to thorough runs what ``one_in`` and ``planted`` leave out of the others; a quick case always runs."""
    seen: Counter[str] = Counter()
    tree = Tree()
    for item in items:
        one_in, planted = item.get_closest_marker("one_in"), item.get_closest_marker("planted")
        if (one_in is None and planted is None) or any(map(item.get_closest_marker, ("quick", "gpu"))):
            continue
        seen[(test := item.nodeid.partition("[")[0])] += 1
        if (one_in and seen[test] % one_in.args[0] != 1) or (planted and tree.is_as_recorded(tree.name(item.path))):
            item.add_marker("thorough")


def pytest_collection_finish() -> None:
    """Leaves what was imported out of later searches for garbage, which engines ask for before they begin."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's cache is neither used nor filled. Each process of pytest-xdist has its own, and may damage it."""
    path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE_DIR", str(path))
        patch.setenv("AUTOTUNE_LOCK_DIR", str(path / "devices"))  # other runs of these tests are not waited for
        yield path


@pytest.fixture(params=["host", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def target(request: pytest.FixtureRequest) -> Target:
    """Each device in turn; those with a GPU under ``-m gpu``."""
    return find_device(request.param)
