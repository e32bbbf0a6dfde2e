"""What tests share: one cache of compiled things for the whole run, and devices by name."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.devices import Target, find_device

DEFINITIONS = Path(__file__).parent / "definitions"
FAULTY = str(DEFINITIONS / "faulty.py")
EXAMPLE = str(Path(__file__).parents[1] / "docs" / "example" / "detect.py")


def pytest_configure(config: pytest.Config) -> None:
    """Leaves out what needs a GPU, and two in three of kernels' cases where no file of theirs is named, unless ``-m`` names it.

    Lets tests interrupt processes that they start.
    """
    of_kernels = any("kernels" in argument for argument in config.args)
    for marker in ("gpu", *(() if of_kernels or config.option.markexpr else ("thorough",))):
        if marker not in (chosen := config.option.markexpr):
            config.option.markexpr = f"({chosen}) and not {marker}" if chosen else f"not {marker}"
    # A shell starts what it leaves in the background with SIGINT ignored, and processes inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's cache is neither used nor filled."""
    path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_CACHE_DIR", str(path))
        patch.setenv("AUTOTUNE_LOCK_DIR", str(path / "devices"))  # other runs of these tests are not waited for
        yield path


@pytest.fixture(params=["host", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def target(request: pytest.FixtureRequest) -> Target:
    """Each device in turn; those with a GPU under ``-m gpu``."""
    return find_device(request.param)
