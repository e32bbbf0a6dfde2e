"""Makes the site of pages that are written for a git host: their navigation, and what their links lead to.

- The navigation is that of docs/README.md: its sections, with the pages that they link to, by the texts of the links.
- The front page is what README says before its first section.
- README, CONTRIBUTING, CHANGELOG and the README of examples/ become pages, and so does each file of the tree that a
  page links to, as code.
- A notebook becomes a page.
- Links, which lead from file to file of the repository, lead to those pages. A folder has none: its link becomes text.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs"
FRONT = "index.md"
PROJECT = {"README.md": "about.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PAGES = {**PROJECT, "docs/README.md": "pages.md", "examples/README.md": "examples.md"}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
ANY_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
CODE = {".py": "python", ".cu": "cuda", ".cuh": "cuda", ".j2": "jinja", ".toml": "toml", ".json": "json"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Takes the navigation from the index."""
    (start, pages), *others = _sections()
    start_pages = [
        {"What it is": FRONT},
        *pages,
        {"README": PAGES["README.md"]},
        {"All pages": PAGES["docs/README.md"]},
    ]
    project = [{"Contributing": PAGES["CONTRIBUTING.md"]}, {"Changes": PAGES["CHANGELOG.md"]}]
    config.nav = [{start: start_pages}, *({title: pages} for title, pages in others), {"Project": project}]
    config.watch += [str(ROOT / name) for name in PAGES]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    files.append(File.generated(config, FRONT, content=_front()))
    for notebook in sorted((ROOT / DOCS / "notebooks").glob("*.ipynb")):
        page = _page_of(notebook.relative_to(ROOT).as_posix()) or ""
        files.append(File.generated(config, page, content=MarkdownExporter().from_filename(str(notebook))[0]))
    for path in sorted({path for path in _linked() if (_page_of(path) or "").startswith("source/")}):
        made = File.generated(config, _page_of(path) or "", content=_as_code(path), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(made)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads the links of a page to pages of the site."""
    place = _place_of(page.file.src_uri)
    here = PurePosixPath(page.file.src_uri).parent

    def led(link: re.Match[str]) -> str:
        image, text, target = link.groups()
        path, _, anchor = target.partition("#")
        if not path or ":" in target:
            return link.group()
        found = _in_tree(place, path)
        if (ROOT / found).is_dir():
            return text
        to = os.path.relpath(_page_of(found) or found, here)
        return f"{image}[{text}]({to}{'#' * bool(anchor)}{anchor})"

    return ANY_LINK.sub(led, markdown)


def _front() -> str:
    """Returns the front page, which has no table of contents and is as wide as the window lets it."""
    return "---\nhide:\n  - toc\n---\n\n" + (ROOT / "README.md").read_text().split("\n## ")[0]


def _sections() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Returns the sections of the index, each with its pages in their order: the text of a link, and the page."""
    _, *sections = re.split(r"^## ", (ROOT / DOCS / "README.md").read_text(), flags=re.MULTILINE)
    for section in sections:
        title, _, text = section.partition("\n")
        named: dict[str, str] = {}
        for name, link in LINK.findall(text):
            page = None if ":" in link else _page_of(_in_tree(f"{DOCS}/README.md", link))
            if page and page.endswith(".md") and not page.startswith("source/"):
                named.setdefault(page, " ".join(name.split()))
        if named:
            yield title, [{name: page} for page, name in named.items()]


def _linked() -> Iterator[str]:
    """Returns the files of the tree that pages link to."""
    for place in [*PAGES, *(path.relative_to(ROOT).as_posix() for path in (ROOT / DOCS).rglob("*.md"))]:
        for _, link in LINK.findall((ROOT / place).read_text()):
            path = link.partition("#")[0]
            if path and ":" not in link and (ROOT / (found := _in_tree(place, path))).is_file():
                yield found


def _in_tree(place: str, link: str) -> str:
    """Returns where in the tree a link of a file leads."""
    return os.path.normpath(PurePosixPath(place).parent / link)


def _page_of(path: str) -> str | None:
    """Returns the page, or the file, of the site for a file of the tree."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/").replace(".ipynb", ".md")
    return f"source/{path}.md"


def _place_of(page: str) -> str:
    """Returns the file of the tree that a page of the site was made of."""
    own = {FRONT: "README.md", **{made: name for name, made in PAGES.items()}}
    return own.get(page, f"{DOCS}/{page}")


def _as_code(path: str) -> str:
    text, fence = (ROOT / path).read_text(), "~" * 5
    return f"# {path}\n\n{fence}{CODE.get(PurePosixPath(path).suffix, 'text')}\n{text.rstrip()}\n{fence}\n"
