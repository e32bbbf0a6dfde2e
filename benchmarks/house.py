"""Measures the tree itself: its rooms and the imports between them, sizes, types, names, and the pages for users.

    python benchmarks/house.py                  the working tree
    python benchmarks/house.py --at 4d2705d     that commit and the working tree, side by side
    python benchmarks/house.py --write          puts the working tree's into docs/design/house.md

Prints Markdown: a table of measures, and one of the rooms of the working tree.
"""

import argparse
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median

from commits import unpack
from tree import CODE, MANY_FILES, TOP, Function, House, annotations, circles, n_any, reached

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "design" / "house.md"
NOW = "this commit"  # the page's column of the working tree
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
N_PASSENGERS = 12  # those that are listed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", action="append", default=[], metavar="COMMIT", help="measure this one as well")
    parser.add_argument("--write", action="store_true", help="put what the working tree has into the page")
    given = parser.parse_args()
    if given.write:
        PAGE.write_text(page(PAGE.read_text(), House(ROOT)))
        return
    houses = {commit: _at(commit) for commit in given.at} | {NOW: House(ROOT)}
    for line in (*measures_table(houses), "", *rooms_table(houses[NOW])):
        print(line)


def page(text: str, house: House) -> str:
    """The page with the measures of a tree in its column NOW and in the table of rooms; other columns stay."""
    lines = text.split("\n")
    found = measures(house)
    head = next(i for i, line in enumerate(lines) if line.startswith("| measure |"))
    column = [cell.strip() for cell in lines[head].strip("|").split("|")].index(NOW)
    old = {}
    for row in range(head + 2, len(lines)):
        if not lines[row].startswith("|"):
            break
        cells = [cell.strip() for cell in lines[row].strip("|").split(" | ")]
        old[cells[0].strip()] = cells
    new = [[name, *old.get(name, [""] * column)[1:column], value] for name, value in found.items()]
    lines[head + 2 : head + 2 + len(old)] = ["| " + " | ".join(cells) + " |" for cells in new]
    rooms = next(i for i, line in enumerate(lines) if line.startswith("| room |"))
    return "\n".join([*lines[:rooms], *rooms_table(house), ""])


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
    return {**_structure(house), **_sizes(house), **_names(house), **_text(house)}


def _structure(house: House) -> dict[str, str]:
    top = [source for source in house.package if source.room == TOP]
    n_short = sum(source.n_lines < SHORT_LINES for source in top)
    arrows = house.arrows()
    both = [f"{a} and {b} {n} / {arrows[b, a]}" for (a, b), n in sorted(arrows.items()) if a < b and arrows[b, a]]
    rooms = {source.room for source in house.package} - {TOP}
    engines = house.arrows("engines")
    return {
        f"modules at the top (under {SHORT_LINES} lines)": f"{len(top)} ({n_short})",
        "rooms, floors, arrows between rooms": f"{len(rooms)}, {_n_floors(arrows)}, {len(arrows)}",
        "imports between rooms": str(arrows.total()),
        "the same of the rooms inside `engines`": (
            f"{len({*chain(*engines)})}, {_n_floors(engines)}, {len(engines)}; {engines.total()}"
        ),
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
    annotated = sum(n_any(node) for source in house.sources for node in annotations(source.tree))
    return {
        "functions": str(len(lines)),
        "lines of a function: median, p99, most": f"{_spread(lines)} (`{longest}`)",
        "files": str(len(files)),
        "lines of a file: median, p99, most": f"{_spread(files)} (`{largest.path}`)",
        "`Any` in annotations": str(annotated),
    }


def _names(house: House) -> dict[str, str]:
    several, passengers, places = house.names_of_several_meanings(), house.passengers(), house.places_of_figures()
    carried = ", ".join(f"{name} {n}" for name, n in passengers.most_common(N_PASSENGERS))
    figures = f"{median(places.values()):g}, {max(places.values())}" if places else "none"
    return {
        "names with several meanings: types, functions, modules": ", ".join(str(len(n)) for n in several.values()),
        f"arguments in more than {MANY_FILES} files, those in most": f"{len(passengers)}: {carried or 'none'}",
        "files that name a figure of a trial: median, most": figures,
    }


def _text(house: House) -> dict[str, str]:
    docstrings, comments = house.docstrings(), house.comments()
    longest, page = max((n, name) for name, page in house.pages.items() for n in paragraphs(page))
    most_lines = max(page.count("\n") for page in house.pages.values())
    return {
        "docstrings that begin without a subject": f"{sum(map(lacks_subject, docstrings))} of {len(docstrings)}",
        "comments that begin without a subject": f"{sum(map(lacks_subject, comments))} of {len(comments)}",
        "words of the longest paragraph for users": f"{longest} (`{page}`)",
        "lines of the longest page for users": str(most_lines),
    }


def _n_floors(arrows: Iterable[tuple[str, str]]) -> int:
    """The rooms on the longest way down, of rooms that do not import each other in a circle; those count once."""
    below: dict[str, set[str]] = {}
    for start, to in arrows:
        below.setdefault(start, set()).add(to)
        below.setdefault(to, set())
    reach = {room: reached(room, below) for room in below}

    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(to) for to in below[room] if room not in reach[to]), default=0)

    return max(map(floor, below), default=0)


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


def _n_lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _sizes_of(found: list[set[str]]) -> str:
    return f"{len(found)}, of {', '.join(str(len(circle)) for circle in found)} modules" if found else "none"


def _spread(values: list[int]) -> str:
    return f"{median(values):g}, {sorted(values)[int(0.99 * (len(values) - 1))]}, {max(values)}"


if __name__ == "__main__":
    main()
