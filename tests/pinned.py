"""The code that decides how a trial ends and what its time means, pinned as it was when MEASURING got its number.

`python -m tests.pinned` pins it as it is now. Whoever changes this code decides first: where a trial may end otherwise
than it would have before, MEASURING in autotune/trial/measure.py is raised, and all recorded trials are stale; where it
may not, the number stays. What only reads differently (comments, docstrings, layout) needs neither.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import autotune
from autotune.devices.machine_code import without_comments
from autotune.trial.measure import MEASURING

PINNED = Path(__file__).with_name("pinned.json")
ROOT = Path(autotune.__file__).parent
PARENTS = ("trial/stations.py", "trial/oracle.py", "trial/context.py")  # what they import decides nothing more
STARTS = (
    *PARENTS,
    "trial/worker.py",
    "devices/cuda/session.py",
    "devices/host/session.py",
    "devices/simulated.py",
)


def now() -> dict[str, Any]:
    """The number and, for each file by its path in the package, a digest of what it says."""
    return {"measuring": MEASURING, "files": {str(path.relative_to(ROOT)): digest(path) for path in sorted(_files())}}


def digest(path: Path) -> str:
    """Changes with the meaning of a file: not with comments, docstrings and layout, nor with the version of Python."""
    text = path.read_text()
    said = "\0".join(_said(ast.parse(text))) if path.suffix == ".py" else " ".join(without_comments(text).split())
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _files() -> set[Path]:
    """The Python files that the device's process imports, and PARENTS; the C++ and CUDA that devices compile."""
    found = {path for path in (ROOT / "devices").rglob("*") if path.suffix in (".cu", ".h", ".hpp", ".cpp")}
    found |= {path for path in (ROOT / "runtime" / "headers").rglob("*") if path.is_file()}
    unread = [ROOT / start for start in STARTS]
    while unread:
        path = unread.pop()
        if path not in found:
            found.add(path)
            unread += [] if str(path.relative_to(ROOT)) in PARENTS else _imported(path)
    return found


def _imported(path: Path) -> Iterator[Path]:
    """The files of this package that one imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in (folder, *(folder / alias.name for alias in node.names)):
                files = {name.with_suffix(".py"), name / "__init__.py"} - {ROOT / "__init__.py"}
                yield from filter(Path.is_file, files)


def _said(node: ast.AST) -> Iterator[str]:
    """The syntax tree in words; what is absent is left out, since versions of Python add fields."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                if not _is_docstring(each):
                    yield name
                    yield from _said(each)
            elif each is not None:
                yield f"{name}={each!r}"


def _is_docstring(node: ast.AST) -> bool:
    """A string that stands alone does nothing, wherever it stands."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def main() -> None:
    """Pin the code as it is."""
    PINNED.write_text(json.dumps(now(), indent=1) + "\n")


if __name__ == "__main__":
    main()
