"""Rooms import one way only, whichever way an import is written, and say what they are for."""

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import autotune

pytestmark = pytest.mark.quick

ROOT = Path(autotune.__file__).parents[1]
CONFIG = ROOT / "pyproject.toml"
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, verbose=False))"
ROOMS, ROOMS_OF_ENGINES = (
    [room.strip() for layer in contract["layers"] for room in layer.split("|") if "(" not in room]  # () are to come
    for contract in tomllib.loads(CONFIG.read_text())["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
)


def lint(folder: Path) -> "subprocess.CompletedProcess[str]":
    """The contracts of pyproject.toml, held against the package in ``folder``."""
    return subprocess.run([sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package elsewhere, to be spoilt."""
    only_python = shutil.ignore_patterns("__pycache__", "*.c", "*.cpp", "*.hpp", "*.cu")
    shutil.copytree(ROOT / "autotune", tmp_path / "autotune", ignore=only_python)
    shutil.copy(CONFIG, tmp_path)
    return tmp_path


def test_imports_go_one_way_only() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("core/space.py", "from ..runtime import wisdom"),
        ("devices/base.py", "from ..trial.worker import Worker"),
        ("trial/stations.py", "def late():\n    from ..validity.resume import resume"),
        ("records/folder.py", "import typing\nif typing.TYPE_CHECKING:\n    from ..search import Searcher"),
        ("search/warm_start.py", "import autotune"),
        ("recommend/trees.py", "from ..records.trial import Trial"),
        ("rendering/render.py", "from ..source.registry import load_kernel"),
        ("engines/network/items.py", "from ..f.engine import FEngine"),
        ("control.py", "from .cli import console"),
        ("sweep/loop.py", "import autotune.cli.console"),
        ("core/errors.py", "import typing\nif typing.TYPE_CHECKING:\n    from .space import Space"),
        ("new_at_the_top.py", "value = 1"),
        ("engines/x/stage.py", "from ..f.band import Band"),
        ("engines/f/chain.py", "def late():\n    from ..x.plan import XPlan"),
        ("engines/machine/backend.py", "from ..streams.samples import SampleInfo"),
        ("engines/files/raw.py", "import typing\nif typing.TYPE_CHECKING:\n    from ..jobs import Bands"),
        ("engines/new_at_the_top.py", "value = 1"),
    ],
)
def test_what_goes_the_wrong_way_is_found(copy: Path, module: str, statement: str) -> None:
    path = copy / "autotune" / module
    path.write_text((path.read_text() if path.exists() else "") + f"\n\n{statement}\n")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert " BROKEN" in done.stdout and Path(module).stem in done.stdout


@pytest.mark.parametrize(
    "room",
    [room for room in ROOMS if room not in ("__main__", "api")] + [f"engines/{room}" for room in ROOMS_OF_ENGINES],
)
def test_a_room_says_what_it_is_for(room: str) -> None:
    told = ast.get_docstring(ast.parse((ROOT / "autotune" / room / "__init__.py").read_text())) or ""
    purpose, *_ = told.split("\n\n")
    assert purpose.rstrip().endswith("."), f"{room}: {told!r}"
    assert "mports " in told, f"autotune/{room}/__init__.py does not say what the room may import"


BROUGHT = ("core", "runtime", "rendering", "recommend")  # rooms that a package of winners has
FOREIGN = {"numpy", "cupy", "cupy_backends", "cuda", "torch", "jinja2"}  # what they may import


def test_what_packages_may_bring_along_needs_little() -> None:
    for path in (path for room in BROUGHT for path in (ROOT / "autotune" / room).rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
        foreign = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
        assert foreign <= FOREIGN, f"{path.relative_to(ROOT)} imports {', '.join(foreign - FOREIGN)}"


def test_public_words_are_not_hidden_by_rooms_of_their_names() -> None:
    shadowed = [name for name in autotune.__all__ if name in ROOMS]
    assert shadowed == ["emit", "runtime", "sweep"]
    assert all(callable(getattr(autotune, name)) for name in shadowed)
