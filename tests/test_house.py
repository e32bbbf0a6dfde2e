"""The measures of the tree find what they are for, in a small tree and in a commit of this one."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
FILES = {
    "autotune/__init__.py": '"""Offers all."""\nfrom .face import show\n',
    "autotune/face.py": '"""Of a face."""\n\n\ndef show(x):\n    from .low import part\n    return part\n',
    "autotune/low/__init__.py": "",
    "autotune/low/part.py": (
        '"""Keeps parts."""\nfrom typing import TYPE_CHECKING, Any\nif TYPE_CHECKING:\n    from .. import face\n\n\n'
        "# and this goes on\n# over two lines\ndef part(x: Any, finalists: list[Any]) -> None:  # what it says\n"
        "    pass\n"
    ),
    "kernels/__init__.py": "",
    "docs/page.md": "# A page\n\none two three\nfour\n\n- an item\n\n    code is no paragraph at all\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of two rooms with the script, as one commit; the page is longer afterwards."""
    scripts = {
        name: (ROOT / name).read_text()
        for name in ("benchmarks/house.py", "benchmarks/tree.py", "benchmarks/commits.py")
    }
    for name, text in {**FILES, **scripts}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "docs" / "page.md").write_text("one two three four five six\n")
    return tmp_path


def measured(tree: Path) -> dict[str, tuple[str, str]]:
    """Measure -> what it is at the commit and now."""
    words = [sys.executable, tree / "benchmarks" / "house.py", "--at", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.split("\n\n")[0].split("\n")]
    return {name: (before, now) for name, before, now in rows[2:]}


def test_measures(tree: Path) -> None:
    found = measured(tree)
    assert {name: now for name, (_, now) in found.items()} == {
        "modules at the top (under 60 lines)": "2 (2)",
        "rooms, floors, arrows between rooms": "1, 1, 2",
        "imports between rooms": "2",
        "the same of the rooms inside `engines`": "0, 0, 0; 0",
        "rooms that import each other, each way": "(top) and low 1 / 1",
        "circles of modules, imports when loaded": "none",
        "circles, with lazy and typing imports": "1, of 2 modules",
        "functions": "2",
        "lines of a function: median, p99, most": "2.5, 2, 3 (`show`)",
        "files": "5",
        "lines of a file: median, p99, most": "2, 6, 10 (`autotune/low/part.py`)",
        "`Any` in annotations": "2",
        "names with several meanings: types, functions, modules": "0, 0, 0",
        "arguments in more than 8 files, those in most": "0: none",
        "files that name a figure of a trial: median, most": "none",
        "docstrings that begin without a subject": "1 of 3",
        "comments that begin without a subject": "2 of 2",
        "words of the longest paragraph for users": "6 (`docs/page.md`)",
        "lines of the longest page for users": "1",
    }
    assert found["words of the longest paragraph for users"][0] == "4 (`docs/page.md`)"


def test_a_commit_that_is_not_there_is_told(tree: Path) -> None:
    words = [sys.executable, tree / "benchmarks" / "house.py", "--at", "no-such-commit"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("no-such-commit cannot be measured: ")
    assert "Traceback" not in done.stderr
