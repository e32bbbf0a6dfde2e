"""Measures the tree itself: its rooms and the imports between them, sizes, types, words, and the pages for users.

    python benchmarks/house.py                  the working tree
    python benchmarks/house.py --at 4d2705d     that commit and the working tree, side by side

Nothing of a tree is imported, so that any commit can be measured. Prints Markdown: a table of measures, and one of the
rooms of the working tree.
"""

import argparse
import ast
import io
import re
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from commits import unpack

ROOT = Path(__file__).parents[1]
PACKAGE, TOP = "autotune", "(top)"
CODE = ("autotune", "kernels")
SHORT_LINES = 60
# what no plain sentence begins with when it says what a thing is or does
NO_SUBJECT = [
    "of",
    "and",
    "as",
    "by",
    "that",
    "what",
    "where",
    "for",
    "with",
    "from",
    "to",
    "in",
    "on",
    "at",
    "or",
    "but",
    "so",
    "which",
    "whose",
]
# other words stand for these now; names that records hold keep them
OLD_WORDS = [
    "face",
    "finals",
    "finalists",
    "knowledge",
    "filling",
    "foreknowledge",
    "hints",
    "catalogue",
    "advice",
    "awkward",
    "ragged",
]
ONE_THING = ("Plan", "compare", "find_device", "DEVICE")  # each should be defined once
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A file of Python, by its path in the tree."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

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
        return self.path.parts[1] if len(self.path.parts) > 2 else TOP


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

    def arrows(self) -> Counter[tuple[str, str]]:
        """(room, room that it imports) -> imports of a module by another."""
        pairs = ((self.modules[a].room, self.modules[b].room) for a, found in self.imports.items() for b in found)
        return Counter(pair for pair in pairs if pair[0] != pair[1])

    def functions(self) -> list[Function]:
        return [node for source in self.sources for node in ast.walk(source.tree) if isinstance(node, Function)]

    def docstrings(self) -> list[str]:
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = (node for source in self.sources for node in ast.walk(source.tree) if isinstance(node, kinds))
        return [text for node in nodes if (text := ast.get_docstring(node))]

    def comments(self) -> list[str]:
        """Comments; of those that go on over lines the first line counts alone."""
        return [text for source in self.sources for text in _comments(source.text)]

    def names(self) -> list[str]:
        """Every identifier where it stands, and the names of files."""
        return [name for source in self.sources for name in (source.path.stem, *_names(source.tree))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", action="append", default=[], metavar="COMMIT", help="measure this one as well")
    commits = parser.parse_args().at
    houses = {commit: _at(commit) for commit in commits} | {"working tree": House(ROOT)}
    for line in (*measures_table(houses), "", *rooms_table(houses["working tree"])):
        print(line)


def measures_table(houses: Mapping[str, House]) -> Iterator[str]:
    """A row for each measure, a column for each tree."""
    columns = [measures(house) for house in houses.values()]
    yield "| " + " | ".join(["measure", *houses]) + " |"
    yield "| --- " * (len(houses) + 1) + "|"
    for name in columns[0]:
        yield "| " + " | ".join([name, *(column[name] for column in columns)]) + " |"


def rooms_table(house: House) -> Iterator[str]:
    """What each room of a tree holds and imports."""
    yield "| room | modules | lines | imports from |"
    yield "| --- | --- | --- | --- |"
    arrows = house.arrows()
    for room in sorted({source.room for source in house.package}):
        found = [source for source in house.package if source.room == room]
        out = ", ".join(f"{to} {n}" for (start, to), n in sorted(arrows.items()) if start == room)
        yield f"| {room} | {len(found)} | {sum(source.n_lines for source in found)} | {out or 'none'} |"


def measures(house: House) -> dict[str, str]:
    """Every measure of a tree, as the table has it."""
    return {**_structure(house), **_sizes(house), **_text(house)}


def _structure(house: House) -> dict[str, str]:
    top = [source for source in house.package if source.room == TOP]
    n_short = sum(source.n_lines < SHORT_LINES for source in top)
    arrows = house.arrows()
    both = [f"{a} and {b} {n} / {arrows[b, a]}" for (a, b), n in sorted(arrows.items()) if a < b and arrows[b, a]]
    return {
        f"modules at the top (under {SHORT_LINES} lines)": f"{len(top)} ({n_short})",
        "rooms below the top": str(len({source.room for source in house.package} - {TOP})),
        "imports between rooms": str(arrows.total()),
        "rooms that import each other, each way": ", ".join(both) or "none",
        "circles of modules, imports when loaded": _sizes_of(circles(house.eager)),
        "circles, with lazy and typing imports": _sizes_of(circles(house.imports)),
    }


def _sizes(house: House) -> dict[str, str]:
    functions = house.functions()
    lines = [_n_lines(node) for node in functions]
    longest = max(functions, key=_n_lines).name
    files = [source.n_lines for source in house.sources]
    largest = max(house.sources, key=lambda source: source.n_lines)
    annotated = sum(_n_any(node) for source in house.sources for node in _annotations(source.tree))
    return {
        "functions": str(len(lines)),
        "lines of a function: median, p99, most": f"{_spread(lines)} (`{longest}`)",
        "files": str(len(files)),
        "lines of a file: median, p99, most": f"{_spread(files)} (`{largest.path}`)",
        "`Any` in annotations": str(annotated),
    }


def _text(house: House) -> dict[str, str]:
    docstrings, comments = house.docstrings(), house.comments()
    names = Counter(part for name in house.names() for part in _parts(name))
    prose = Counter(word for text in (*docstrings, *comments) for word in re.findall(r"[a-z]+", text.lower()))
    longest, page = max((n, name) for name, page in house.pages.items() for n in paragraphs(page))
    most_lines = max(page.count("\n") for page in house.pages.values())
    return {
        "docstrings that begin without a subject": f"{sum(map(lacks_subject, docstrings))} of {len(docstrings)}",
        "comments that begin without a subject": f"{sum(map(lacks_subject, comments))} of {len(comments)}",
        "old words in names": _counted(names, OLD_WORDS),
        "old words in docstrings and comments": _counted(prose, OLD_WORDS),
        "definitions of one name": ", ".join(f"{name} {_n_defined(house, name)}" for name in ONE_THING),
        "words of the longest paragraph for users": f"{longest} (`{page}`)",
        "lines of the longest page for users": str(most_lines),
    }


def circles(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """The sets of modules, each of which reaches all others of its set; the largest first."""
    reached = {name: _reached(name, imports) for name in imports}
    found = {frozenset(other for other in there if name in reached[other]) for name, there in reached.items()}
    return sorted(({*circle} for circle in found if len(circle) > 1), key=len, reverse=True)


def paragraphs(page: str) -> Iterator[int]:
    """The words of each paragraph and item of a list; code and tables are none."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    kept = "\n".join(line for line in text.split("\n") if not line.startswith(("    ", "|")))
    yield from (len(block.split()) for block in re.split(r"\n\s*\n|\n(?=- |\d+\. )", kept))


def lacks_subject(text: str) -> bool:
    """Whether the first word is one of NO_SUBJECT."""
    words = re.findall(r"[A-Za-z']+", text)
    return bool(words) and words[0].lower() in NO_SUBJECT


def _at(commit: str) -> House:
    """The tree of a commit, unpacked into a folder that goes when it has been read."""
    with tempfile.TemporaryDirectory() as folder:
        if (why_not := unpack(ROOT, commit, (*CODE, "docs"), Path(folder))) is not None:
            raise SystemExit(f"{commit} cannot be measured: {why_not}")
        return House(Path(folder))


def _eager(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes outside of functions and of ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue
        yield node
        yield from _eager(node)


def _n_lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _reached(start: str, imports: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    unread = [start]
    while unread:
        new = imports[unread.pop()] - found
        found |= new
        unread += new
    return found


def _annotations(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, Function) and node.returns is not None:
            yield node.returns


def _n_any(annotation: ast.AST) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))


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


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (*_DEFINES, ast.alias)):
            yield node.name.rpartition(".")[2]
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            yield node.arg


def _n_defined(house: House, name: str) -> int:
    """The modules that define ``name`` at their top."""
    return sum(any(_defines(node, name) for node in source.tree.body) for source in house.sources)


def _defines(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    return isinstance(node, _DEFINES) and node.name == name


def _parts(name: str) -> list[str]:
    """The words of an identifier: ``n_finalists`` and ``HintsFound`` have two each."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")


def _counted(words: Counter[str], asked: Iterable[str]) -> str:
    found = [f"{word} {words[word]}" for word in asked if words[word]]
    return f"{sum(words[word] for word in asked)}: {', '.join(found)}" if found else "none"


def _sizes_of(found: list[set[str]]) -> str:
    return f"{len(found)}, of {', '.join(str(len(circle)) for circle in found)} modules" if found else "none"


def _spread(values: list[int]) -> str:
    return f"{median(values):g}, {sorted(values)[int(0.99 * (len(values) - 1))]}, {max(values)}"


if __name__ == "__main__":
    main()
