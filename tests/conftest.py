"""What tests share: one cache of compiled things for the whole run, and devices by name."""

import gc
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.devices import Target, find_device

# Tests with many cases, a compile or a process for each: of so many one runs where all tests do. ``-m thorough`` runs
# the others, and so does naming a file of kernels.
ONE_IN = {
    **dict.fromkeys(("mutants", "any_problem", "variants", "host_agrees", "a_part_compiles", "a_part_does_not"), 3),
    "test_place_mutants.py::test_a_planted_fault_is_found": 3,
    "test_twins.py::test_twins_are_told_apart": 2,
    "test_weights.py::test_weights_are_those_of_the_frames_that_came": 2,
    "test_kill.py::test_a_cache_that_is_deleted_in_the_middle_of_a_sweep_is_made_anew": 2,
    "test_kill.py::test_processes_that_are_killed_are_replaced": 2,
    "test_excluded.py::test_a_config_that_is_excluded_by_now_is_not_the_winner": 3,
    "test_verdict.py::test_what_is_edited_and_reverted_has_its_own_winner_each_time": 2,
    "test_standing.py::test_what_reads_differently_is_not_measured_again": 3,
    "test_standing.py::test_what_does_something_else_is_measured_again": 2,
    "test_commands.py::test_packets_lost_repeated_and_exchanged_on_purpose_are_each_in_one_counter": 2,
    "test_host_code.py::test_host_code_is_left_out": 2,
    "test_host_checker.py::test_bug_is_found_in_every_schedule": 2,
}

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
    """Leaves all but one in so many cases of some tests to thorough runs."""
    seen: Counter[str] = Counter()
    for item in items:
        name = getattr(item, "originalname", "")
        where = f"{item.path.name}::{name}"
        of_kernels = (n for word, n in ONE_IN.items() if "kernels" in item.path.parts and word in name)
        n = ONE_IN.get(where) or next(of_kernels, 1)
        if n > 1 and not any(item.get_closest_marker(marker) for marker in ("quick", "gpu")):
            seen[str(item.path) + name] += 1
            if seen[str(item.path) + name] % n != 1:
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
