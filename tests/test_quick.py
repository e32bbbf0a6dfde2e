"""The quick tests (`pytest -m quick`) touch every room and every kernel."""

from pathlib import Path

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


@pytest.mark.parametrize("name", OWN)
def test_every_kernel_is_compiled_and_one_of_its_mutants_fails(name: str) -> None:
    text = "".join(path.read_text() for path in (HERE / "kernels").glob(f"test_{name}*.py"))
    for test in ("any_problem_is_right", "mutants_fail"):
        _, _, before = text.partition(f"def test_{test}(")[0].rpartition("\n\n\n")
        assert "first_is_quick(" in before, test
