"""The quick tests (`pytest -m quick`) touch every room and every kernel."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from autotune.source.registry import all_kernels

pytestmark = pytest.mark.quick
HERE = Path(__file__).parent
ROOMS = sorted(path.parent.name for path in (HERE.parent / "autotune").glob("*/__init__.py"))
OWN = sorted(
    name for name, kernel in all_kernels().items() if kernel.source_path.is_relative_to(HERE.parent / "kernels")
)


def is_quick(path: Path) -> bool:
    text = path.read_text()
    return "mark.quick" in text or "first_is_quick(" in text


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_touched(room: str) -> None:
    assert any(map(is_quick, (HERE / room).rglob("test_*.py")))


def quick_tests(name: str) -> list[Any]:
    """Returns the tests of a kernel of which a case is quick."""
    files = sorted((HERE / "kernels").glob(f"test_{name}*.py"))
    modules = [import_module(f"tests.kernels.{path.stem}") for path in files]
    tests = [test for module in modules for test in vars(module).values() if hasattr(test, "pytestmark")]
    return [test for test in tests if any(map(has_a_quick_case, test.pytestmark))]


def has_a_quick_case(mark: pytest.Mark) -> bool:
    cases = list(mark.args[1]) if mark.name == "parametrize" else []
    return any(each.name == "quick" for case in cases for each in getattr(case, "marks", ()))


@pytest.mark.parametrize("name", OWN)
def test_every_kernel_is_compiled_and_one_of_its_mutants_fails(name: str) -> None:
    marks = [{mark.name for mark in test.pytestmark} for test in quick_tests(name)]
    assert any("planted" in each for each in marks)
    assert any("planted" not in each for each in marks)
