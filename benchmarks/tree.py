"""Reads a tree of Python files whole: its modules, imports and names. Nothing of it is imported, so that any commit
can be measured.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autotune.core.python_syntax import module_tree

PACKAGE, TOP = "autotune", "(top)"
CODE = ("autotune", "kernels")

# modules with one interface: a name that several of them define means one thing
FAMILIES = ("autotune/devices", "autotune/records/export", "autotune/engines/files/formats")
PARALLEL = ("autotune/engines/f", "autotune/engines/fx", "autotune/engines/x")  # rooms with parts of the same names
# a command is named like the function that it calls
DOORS = (
    "autotune/cli/commands",
    "autotune/cli/program.py",
    "autotune/api.py",
)
MANY_FILES = 8  # an argument in more files than these is a passenger
TRIAL, CONSUMERS = "Trial", ("records", "analysis", "report", "cli")  # who should not name each figure of a trial
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A file of Python, by its path in the tree."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return module_tree(self.text)

    @property
    def n_lines(self) -> int:
        return self.text.count("\n")

    @property
    def module(self) -> str:
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """The folder of the package that it lies in."""
        return self.room_at(1)

    def room_at(self, level: int) -> str:
        """The folder at that depth of the package; a module that lies beside such folders is a room by itself."""
        parts = self.path.parts
        if len(parts) > level + 1:
            return parts[level]
        return TOP if level == 1 else self.path.stem


class House:
    """A tree, read whole."""

    def __init__(self, root: Path) -> None:
        paths = sorted(path for folder in CODE for path in (root / folder).rglob("*.py"))
        self.sources = [Source(path.relative_to(root), path.read_text()) for path in paths]
        pages = sorted([*(root / "docs").glob("*.md"), *(root / "docs" / "kernels").glob("*.md")])
        self.pages = {str(page.relative_to(root)): page.read_text() for page in pages}  # those for users
        self.package = [source for source in self.sources if source.path.parts[0] == PACKAGE]
        self.modules = {source.module: source for source in self.package}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Module -> modules of the package that it imports anywhere: lazily and for types, too."""
        return {name: set(self._imported(source, ast.walk(source.tree))) for name, source in self.modules.items()}

    @cached_property
    def eager(self) -> dict[str, set[str]]:
        """Module -> modules that it imports when it is imported itself."""
        return {name: set(self._imported(source, _eager(source.tree))) for name, source in self.modules.items()}

    def _imported(self, source: Source, nodes: Iterable[ast.AST]) -> Iterator[str]:
        package = source.module if source.path.name == "__init__.py" else source.module.rpartition(".")[0]
        for node in nodes:
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *filter(None, [node.module])])
                names = [f"{base}.{a.name}" if f"{base}.{a.name}" in self.modules else base for a in node.names]
            yield from (name for name in names if name in self.modules and name != source.module)

    def arrows(self, inside: str = "") -> Counter[tuple[str, str]]:
        """(room, room that it imports) -> imports of a module by another; ``inside``: of the rooms of that room."""
        level, counted = (2, f"{PACKAGE}.{inside}.") if inside else (1, f"{PACKAGE}")
        pairs = (
            (self.modules[a].room_at(level), self.modules[b].room_at(level))
            for a, found in self.imports.items()
            for b in found
            if a.startswith(counted) and b.startswith(counted)
        )
        return Counter(pair for pair in pairs if pair[0] != pair[1])

    def names_of_several_meanings(self) -> dict[str, dict[str, list[str]]]:
        """Kind of a name -> name -> the modules that define it, where these are two or more.

        Kinds are "types" (classes and aliases), "functions" (public ones) and "modules" (files in two rooms).
        """
        found: dict[str, dict[str, dict[str, str]]] = {"types": {}, "functions": {}, "modules": {}}
        for source in self.package:
            path = str(source.path)
            if path.startswith(DOORS) or source.path.stem.startswith("__"):
                continue
            owner = next((family for family in FAMILIES if path.startswith(f"{family}/")), path)
            is_parallel = str(source.path.parent) in PARALLEL
            found["modules"].setdefault(source.path.stem, {})["an engine" if is_parallel else owner] = path
            for kind, name in _definitions(source.tree):
                found[kind].setdefault(name, {})[owner] = path
        return {
            kind: {name: sorted(owners.values()) for name, owners in sorted(names.items()) if len(owners) > 1}
            for kind, names in found.items()
        }

    def passengers(self) -> Counter[str]:
        """Arguments of functions by the number of files in which they are, where there are more than MANY_FILES."""
        files: dict[str, set[Path]] = {}
        for source in self.package:
            for node in ast.walk(source.tree):
                if isinstance(node, ast.arg) and node.arg != "self":
                    files.setdefault(node.arg, set()).add(source.path)
        return Counter({name: len(found) for name, found in files.items() if len(found) > MANY_FILES})

    def places_of_figures(self) -> dict[str, int]:
        """Field of a trial -> the files of the rooms CONSUMERS that name it."""
        owners = [node for source in self.package for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)]
        fields = {
            node.target.id
            for owner in owners
            if owner.name == TRIAL
            for node in owner.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        named = [_words(source.tree) for source in self.package if source.room in CONSUMERS]
        return {field: sum(field in words for words in named) for field in sorted(fields)}

    def functions(self) -> list[Function]:
        return [node for source in self.sources for node in ast.walk(source.tree) if isinstance(node, Function)]

    def docstrings(self) -> list[str]:
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = (node for source in self.sources for node in ast.walk(source.tree) if isinstance(node, kinds))
        return [text for node in nodes if (text := ast.get_docstring(node))]

    def comments(self) -> list[str]:
        """Comments; of those that go on over lines the first line counts alone."""
        return [text for source in self.sources for text in _comments(source.text)]


def _eager(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes outside of functions and of ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue
        yield node
        yield from _eager(node)


def annotations(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, Function) and node.returns is not None:
            yield node.returns


def _comments(text: str) -> Iterator[str]:
    last = (-1, "")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.strip().startswith("#")
            goes_on = alone and last == (token.start[0] - 1, "alone")
            last = (token.start[0], "alone" if alone else "")
            said = token.string.lstrip("#").strip(" -")
            if said and not goes_on and not said.startswith(("type:", "noqa", "pragma")):
                yield said


def _definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(kind, name) of each public class, alias and function at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield "types", node.name
        elif isinstance(node, Function) and not node.name.startswith("_"):
            yield "functions", node.name
        elif isinstance(node, ast.Assign):
            aliases = (target.id for target in node.targets if isinstance(target, ast.Name))
            yield from (("types", name) for name in aliases if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name))


def _words(tree: ast.AST) -> set[str]:
    """Every name of a file, and the words of its texts but docstrings."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            found.update(re.findall(r"\w+", node.value))
    return found


def circles(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """The sets of modules, each of which reaches all others of its set; the largest first."""
    reach = {name: reached(name, imports) for name in imports}
    found = {frozenset(other for other in there if name in reach[other]) for name, there in reach.items()}
    return sorted(({*circle} for circle in found if len(circle) > 1), key=len, reverse=True)


def reached(start: str, imports: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    unread = [start]
    while unread:
        new = imports[unread.pop()] - found
        found |= new
        unread += new
    return found


def n_any(annotation: ast.AST) -> int:
    """The times that an annotation says Any."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))
