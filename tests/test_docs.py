"""The pages of docs/: links hold, user pages are short, the commands they name exist, and pictures are current."""

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from autotune.cli import app

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")), *DOCS.rglob("*.md")])
INDEX = DOCS / "README.md"
USER_PAGES = sorted({*DOCS.glob("*.md"), *(DOCS / "kernels").glob("*.md")} - {INDEX})
GLOSSARY = DOCS / "glossary.md"
HARD = ("baked", "variant", "stale", "regret", "wisdom", "tier", "chunk", "heap", "batch", "dump")
MOST_LINES, MOST_WORDS = 120, 95
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<!\S)--?[a-z][a-z-]*")
COMMANDS: Any = typer.main.get_command(app)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """The text without blocks of code."""
    return "\n".join(line for line in FENCE.sub("", page.read_text()).split("\n") if not line.startswith("    "))


def anchors(page: Path) -> set[str]:
    """What links to sections of a page may end in, as GitHub makes it of headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{name(page)}: {link}: there is no such file"
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
            yield f"{name(page)}: {link}: there is no such section"


def commands(page: Path) -> Iterator[str]:
    """What a page tells to type after ``autotune``, in blocks and in code within lines."""
    text = page.read_text().replace("\\\n", " ")
    code = re.findall(r"`([^`\n]+)`", prose(page))
    blocks = [line.strip() for line in text.split("\n") if line.startswith("    ")]
    fenced = [line for block in FENCE.findall(text) for line in block.split("\n")]
    for line in (*code, *blocks, *fenced):
        for part in re.split(r" && |# made by: ", line):
            if found := re.match(r"(?:\S*/bin/)?autotune ([a-z-]+.*)", part):
                yield found.group(1)


def wrong_command(line: str) -> str | None:
    """Why no such command can be typed; None if it can."""
    command = COMMANDS.commands.get(line.split()[0])
    if command is None:
        return f"there is no command {line.split()[0]!r}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [option for option in OPTION.findall(line) if option not in {*known, "-h", "--help"}]
    return f"{line.split()[0]} has no {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(dead_links(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist(page: Path) -> None:
    wrong = [f"autotune {line}: {why}" for line in commands(page) if (why := wrong_command(line))]
    assert wrong == []


@pytest.mark.parametrize("page", USER_PAGES, ids=name)
def test_user_pages_are_short(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= MOST_LINES
    blocks = re.split(r"\n\s*\n|\n(?=- |\d+\. |\|)", prose(page))
    long = [block[:60] for block in blocks if not block.startswith("|") and len(block.split()) > MOST_WORDS]
    assert long == [], f"paragraphs of more than {MOST_WORDS} words"


def test_the_index_names_every_page() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(INDEX.read_text())}
    assert [name(page) for page in sorted(DOCS.rglob("*.md")) if page not in linked | {INDEX}] == []


def terms() -> list[str]:
    return re.findall(r"^\| ([^|]+) \| [^|]+ \| \[[^\]]+\]\([^)]+\) \|$", GLOSSARY.read_text(), re.MULTILINE)


def test_words_of_the_glossary_are_used_and_hard_words_lead_there() -> None:
    pages = {page: page.read_text() for page in {ROOT / "README.md", *USER_PAGES} - {GLOSSARY}}
    everything = "\n".join(pages.values())
    assert {*HARD, "trial", "config", "campaign", "F-engine", "roofline"} <= {*terms()}
    assert [term for term in terms() if not re.search(rf"\b{term}(?:e?s|d)?\b", everything, re.IGNORECASE)] == []
    hard = re.compile(rf"(?<![\w./])(?:{'|'.join(HARD)})(?:e?s)?(?![\w./])", re.IGNORECASE)
    theirs = [page for page in pages if not page.name.startswith(("engines", "network"))]
    users = [page for page in theirs if any(hard.search(line) for line in prose(page).split("\n") if line[:1] != "|")]
    assert [name(page) for page in users if "glossary.md" not in pages[page]] == []


def test_lab_notes_are_dated() -> None:
    notes = sorted((DOCS / "lab").glob("*"))
    assert notes
    assert [note.name for note in notes if not re.fullmatch(r"\d{4}-\d\d-\d\d-[a-z0-9-]+\.md", note.name)] == []


def test_pictures_are_what_their_scripts_make() -> None:
    made = subprocess.run(
        [sys.executable, DOCS / "pictures" / "make.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stderr) == (0, "")


def test_figures_are_what_their_script_makes() -> None:
    for page, renewed in runpy.run_path(str(DOCS / "figures.py"))["PAGES"].items():
        text = page.read_text()
        assert text == renewed(text), "run `python docs/figures.py`"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sweep --kernel ddc --effort quick", None),
        ("sweeep --kernel ddc", "there is no command 'sweeep'"),
        ("sweep --kernal ddc", "sweep has no --kernal"),
    ],
)
def test_what_is_no_command_is_found(line: str, why: str | None) -> None:
    assert wrong_command(line) == why


def test_what_is_no_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n[a](#a-page) [b](#b) [c](c.md) [d](https://d)\n\n    [no](link.md)\n")
    assert list(dead_links(page)) == [
        "page.md: #b: there is no such section",
        "page.md: c.md: there is no such file",
    ]
