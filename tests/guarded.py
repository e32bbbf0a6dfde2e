"""Planted mistakes, which test the tests: they run where what they guard has changed since all of them were found.

`python -m tests.guarded` runs the planted tests of each file whose digest is not the one in tests/planted.json, and
writes the new digest of each file whose planted tests have all passed; `--all` runs those of every file, `-n 2` on two
cores. A normal run leaves planted tests out while their digest is the recorded one, and runs and fails where it is not.
`pytest -m thorough` runs all of them, whatever is recorded.

The digest of a file covers itself, all that it imports from this tree, what it imports by name only (devices and
kernels), and the sources beside these: templates, C++, C.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from .pinned import digest as digest_of_meaning

ROOT = Path(__file__).resolve().parents[1]
RECORDED = "tests/planted.json"
COMMAND = "python -m tests.guarded"
SOURCES = (".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".j2", ".toml")
IS_PLANTED = re.compile(r"^[^'\"#]*\bmark\.planted\b", re.MULTILINE)  # not within a string
HOST = "autotune/devices/host"  # the device on which planted mistakes run; it is imported by its name


@dataclass
class Tree:
    """A checkout: which files its planted tests depend on, and digests of them."""

    root: Path = ROOT
    _imported: dict[Path, set[Path]] = field(default_factory=dict)
    _digests: dict[Path, str] = field(default_factory=dict)
    _of_tests: dict[str, str] = field(default_factory=dict)

    def planted(self) -> list[str]:
        """Returns the files with planted tests, by their paths in the tree."""
        paths = sorted((self.root / "tests").rglob("test_*.py"))
        return [self.name(path) for path in paths if IS_PLANTED.search(path.read_text())]

    def recorded(self) -> dict[str, str]:
        path = self.root / RECORDED
        return json.loads(path.read_text()) if path.exists() else {}

    def stale(self) -> list[str]:
        """Returns the files whose planted tests have not passed as the tree is now."""
        return [name for name in self.planted() if not self.is_as_recorded(name)]

    def is_as_recorded(self, name: str) -> bool:
        """Whether the planted tests of a file have passed as the tree is now."""
        return name in self._known and self._known[name] == self.digest(name)

    @cached_property
    def _known(self) -> dict[str, str]:
        return self.recorded()

    def digest(self, name: str) -> str:
        """Returns a digest of all on which the tests of a file depend."""
        if name not in self._of_tests:
            lines = (f"{self.name(path)} {self._digest(path)}\n" for path in sorted(self.files(name)))
            self._of_tests[name] = hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
        return self._of_tests[name]

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def files(self, name: str) -> set[Path]:
        """Returns all on which the tests of a file depend."""
        found = self._closure([self.root / name])
        if self.root / "autotune/devices/__init__.py" in found:
            found |= self._closure((self.root / HOST).rglob("*.py"))
            found |= _sources((self.root / HOST).rglob("*"))
        if self.root / "autotune/source/registry.py" in found and not self._kernels(found):
            found |= self._closure((self.root / "kernels").rglob("*.py"))  # any of them may be asked for by its name
        found |= {path for folder in {path.parent for path in found} for path in _sources(folder.iterdir())}
        for kernel in self._kernels(found):
            folders = (self.root / "templates" / "lib", self.root / "templates" / kernel)
            found |= {path for folder in folders for path in _sources(folder.rglob("*"))}
            found |= _sources([self.root / "templates" / f"{kernel}.cu.j2"])
        folders_of_tests = [each for each in (self.root / name).parents if each.is_relative_to(self.root / "tests")]
        return found | {path for each in folders_of_tests if (path := each / "conftest.py").exists()}

    def _kernels(self, paths: Iterable[Path]) -> set[str]:
        """Returns the names of the kernels whose definitions are among ``paths``."""
        inside = (path.relative_to(self.root / "kernels") for path in paths if self._is_in(path, "kernels"))
        return {path.parts[0].removesuffix(".py") for path in inside} - {"__init__"}

    def _is_in(self, path: Path, folder: str) -> bool:
        return path.is_relative_to(self.root / folder)

    def _closure(self, starts: Iterable[Path]) -> set[Path]:
        found, unread = set[Path](), list(starts)
        while unread:
            path = unread.pop()
            if path not in found:
                found.add(path)
                unread += self._imports(path)
        return found

    def _imports(self, path: Path) -> set[Path]:
        """Returns the files of this tree that one imports, wherever in it; a public name is where it is defined."""
        if path not in self._imported:
            names = set(_imported_names(ast.parse(path.read_text()), self._dotted(path)))
            names = {each for name in names for each in self._public(name)}
            self._imported[path] = {file for name in names for file in self._files_called(name)}
        return self._imported[path]

    def _public(self, name: str) -> Iterator[str]:
        yield name
        if name == "autotune":
            yield "autotune.api"
        elif name.startswith("autotune."):
            yield self._where_public.get(name.removeprefix("autotune."), name)

    @cached_property
    def _where_public(self) -> dict[str, str]:
        """Returns where the public names are defined; rooms are found by themselves."""
        path = self.root / "autotune" / "__init__.py"
        nodes = ast.walk(ast.parse(path.read_text())) if path.exists() else []
        of_names = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1]
        return {alias.name: f"autotune.{node.module}" for node in of_names for alias in node.names}

    def _dotted(self, path: Path) -> list[str]:
        """Returns the package to which the relative imports of a file refer."""
        parts = list(path.relative_to(self.root).parts[:-1])
        return ["autotune", *parts] if parts[:1] == ["kernels"] else parts

    def _files_called(self, name: str) -> list[Path]:
        parts = name.split(".")
        parts = parts[1:] if parts[:2] == ["autotune", "kernels"] else parts
        base = self.root.joinpath(*parts)
        of_all = self.root / "autotune" / "__init__.py"  # it imports what it offers; callers depend on what they use
        return [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file() and path != of_all]

    def _digest(self, path: Path) -> str:
        """Changes with the meaning of Python. Elsewhere text counts, and in engines: mistakes are planted in text."""
        if path not in self._digests:
            is_text = path.suffix != ".py" or self._is_in(path, "autotune/engines")
            text = hashlib.sha256(path.read_bytes()).hexdigest()[:16] if is_text else digest_of_meaning(path)
            self._digests[path] = text
        return self._digests[path]


def _sources(paths: Iterable[Path]) -> set[Path]:
    return {path for path in paths if path.suffix in SOURCES and path.is_file()}


def _imported_names(tree: ast.AST, package: list[str]) -> Iterator[str]:
    """Yields modules and, of those from which names are imported, also the names, which may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
            if base != "autotune":
                yield base


# ---------------------------------------------------------------------- new digests
class Outcomes:
    """A plugin of pytest that counts how the tests of each file end."""

    def __init__(self) -> None:
        self.of: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.of[report.nodeid.partition("::")[0]][report.outcome] += 1


def have_passed(outcomes: Mapping[str, int]) -> bool:
    """Whether tests of a file ran and none of them failed or was skipped."""
    return outcomes.get("passed", 0) > 0 and set(outcomes) == {"passed"}


def run(names: list[str], words: list[str]) -> list[str]:
    """Runs the planted tests of files, records the files whose tests all passed, and returns them."""
    os.environ.pop("PYTEST_ADDOPTS", None)  # it might choose some of the tests
    tree, outcomes = Tree(), Outcomes()
    before = {name: tree.digest(name) for name in names}
    code = pytest.main(["-q", "--rootdir", str(ROOT), *words, "-m", "planted and not gpu", *names], [outcomes])
    after = Tree()
    is_whole = code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    passed = [n for n in names if is_whole and have_passed(outcomes.of[n]) and after.digest(n) == before[n]]
    record(after, {name: before[name] for name in passed})
    return passed


def record(tree: Tree, digests: Mapping[str, str]) -> None:
    """Adds digests to those that are recorded; files that have no planted tests any more are left out."""
    known = {**tree.recorded(), **digests}
    known = {name: known[name] for name in tree.planted() if name in known}
    (tree.root / RECORDED).write_text(json.dumps(known, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="run those of every file")
    parser.add_argument("-n", type=int, help="processes")
    parser.add_argument("file", nargs="*", help="files of tests; default: those whose digests are not as recorded")
    given = parser.parse_args()
    os.chdir(ROOT)
    tree = Tree()
    names = given.file or (tree.planted() if given.all else tree.stale())
    passed = run(names, ["-n", str(given.n)] if given.n else []) if names else []
    record(tree, {})
    print(f"{len(passed)} of {len(names)} files were recorded in {RECORDED}")
    if left := sorted(set(names) - set(passed)):
        print(f"not recorded, as tests failed or were skipped, or sources changed meanwhile: {', '.join(left)}")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
