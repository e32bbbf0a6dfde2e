"""Planted mistakes run where what they guard has changed: digests notice that, and only tests that pass renew them."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .engines import test_numpy_mutants, test_plan_mutants
from .guarded import COMMAND, RECORDED, ROOT, Tree, have_passed

pytestmark = pytest.mark.quick
TREE = Tree()
PLANTED = TREE.planted()


def test_planted_mistakes_were_found_in_this_tree() -> None:
    assert TREE.stale() == [], (
        "What these files of planted tests guard has changed since all their mistakes were found: run them by "
        f"`{COMMAND} -n 2`, and commit {RECORDED}"
    )
    assert list(TREE.recorded()) == PLANTED, f"run `{COMMAND}`, and commit {RECORDED}"


# ---------------------------------------------------------------------- what is guarded
@pytest.mark.parametrize("name", PLANTED)
def test_what_a_file_imports_is_guarded(name: str) -> None:
    """As Python sees it: what it holds after the import, also of modules and names that are imported from others."""
    module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
    origins = {getattr(value, "__module__", None) or getattr(value, "__name__", "") for value in vars(module).values()}
    files = {file for origin in origins if (file := getattr(sys.modules.get(str(origin)), "__file__", None))}
    rooms = [ROOT / room for room in ("autotune", "kernels", "tests")]  # an environment may lie in the tree, too
    inside = {Path(file).resolve() for file in files if any(map(Path(file).resolve().is_relative_to, rooms))}
    assert inside - {ROOT / "autotune/__init__.py"} <= TREE.files(name)


def test_kernels_guard_template_definition_reference_and_checker() -> None:
    found = {TREE.name(path) for path in TREE.files("tests/kernels/test_pfb_fir.py")}
    assert found >= {
        "kernels/pfb_fir.py",
        "templates/pfb_fir.cu.j2",
        "templates/pfb_fir/copy.cuh",
        "templates/lib/async.cuh",
        "tests/kernels/common.py",
        "tests/kernels/test_pfb_fir.py",
        "tests/conftest.py",
        "autotune/rendering/render.py",
        "autotune/trial/verify.py",
        "autotune/runtime/comparison.py",
        "autotune/devices/host/build.py",
        "autotune/devices/host/session.py",
        "autotune/devices/host/cuda/mma.hpp",
    }
    assert any(name.startswith("autotune/devices/host/runtime/") for name in found)
    assert not any("ddc" in name or "report" in name or "engines" in name for name in found)


def test_engines_guard_what_is_mutated() -> None:
    faults = [fault for faults in test_plan_mutants.FOUND_BY.values() for fault in faults.values()]
    for name, mutated in (("test_plan_mutants", faults), ("test_numpy_mutants", test_numpy_mutants.VOLTAGES.values())):
        files = {TREE.name(path) for path in TREE.files(f"tests/engines/{name}.py")}
        assert {f"autotune/engines/{module.replace('.', '/')}.py" for module, _, _ in mutated} <= files
    assert ROOT / "autotune/engines/network/place.c" in TREE.files("tests/engines/network/test_place_mutants.py")


# ---------------------------------------------------------------------- a tree of a few files
GOOD = "import pytest\nfrom .helper import f\n\n@pytest.mark.planted\ndef test_it():\n    assert f() == 1\n"
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\nmarkers = ["planted", "gpu"]\n',
    "tests/__init__.py": "",
    "tests/helper.py": "def f():\n    return 1  # one\n\ndef g():\n    import autotune.core.one\n",
    "tests/test_passes.py": GOOD,
    "tests/test_fails.py": GOOD.replace("f() == 1", "f() == 2"),
    "tests/test_is_skipped.py": GOOD.replace("assert", "pytest.skip('it cannot run'); assert"),
    "tests/test_edits.py": GOOD + "    open('tests/helper.py', 'a').write('# more\\nf()\\n')\n",
    "tests/test_plants_nothing.py": "def test_it():\n    pass\n",
    "tests/test_passes_apart.py": "import pytest\n\n@pytest.mark.planted\ndef test_it():\n    pass\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("tests/helper.py", "# one", "# first", False),
        ("tests/helper.py", "return 1", "return 3", True),
        ("tests/test_passes.py", "f() == 1", "f() == 1 + 0", True),
        ("tests/test_fails.py", "f() == 2", "f() == 1", False),
    ],
)
def test_what_is_imported_counts(tree: Tree, name: str, old: str, new: str, changes: bool) -> None:
    before = tree.digest("tests/test_passes.py")
    (tree.root / name).write_text(FILES[name].replace(old, new))
    assert (Tree(tree.root).digest("tests/test_passes.py") != before) == changes


def test_a_file_that_appears_counts(tree: Tree) -> None:
    before = tree.digest("tests/test_passes.py")
    for name in ("autotune/core/one.py", "tests/conftest.py", "tests/beside.cu"):
        (tree.root / name).parent.mkdir(parents=True, exist_ok=True)
        (tree.root / name).write_text("")
        after = Tree(tree.root).digest("tests/test_passes.py")
        assert after != before, name
        before = after


@pytest.mark.parametrize(
    ("outcomes", "passed"),
    [({}, False), ({"passed": 2}, True), ({"passed": 2, "skipped": 1}, False), ({"passed": 2, "failed": 1}, False)],
)
def test_all_must_have_passed(outcomes: dict[str, int], passed: bool) -> None:
    assert have_passed(outcomes) == passed


def renewed(tree: Tree) -> "subprocess.CompletedProcess[str]":
    """The command, in a copy of it that belongs to the tree."""
    for name in ("guarded.py", "pinned.py"):
        shutil.copy(ROOT / "tests" / name, tree.root / "tests")
    words = [sys.executable, "-m", *COMMAND.split()[2:]]
    return subprocess.run(words, cwd=tree.root, capture_output=True, text=True, timeout=300)


def test_only_files_whose_tests_all_pass_are_recorded(tree: Tree) -> None:
    (tree.root / RECORDED).write_text(json.dumps({"tests/test_fails.py": "old", "tests/test_gone.py": "old"}))
    done = renewed(tree)
    assert done.returncode == 1, done.stdout + done.stderr
    # The file that edits a helper makes all stale that import it, whichever of them passed before.
    recorded = Tree(tree.root).recorded()
    assert (
        recorded.keys() == {"tests/test_fails.py", "tests/test_passes_apart.py"}
        and recorded["tests/test_fails.py"] == "old"
    )
    assert "not recorded" in done.stdout and "tests/test_is_skipped.py" in done.stdout
    assert Tree(tree.root).stale() == [f"tests/test_{name}.py" for name in ("edits", "fails", "is_skipped", "passes")]
