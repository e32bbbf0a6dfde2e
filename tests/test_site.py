"""The site of docs/ is built without a warning, names all that is public, and its notebook runs."""

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

import autotune

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def module(path: Path) -> ModuleType:
    """A script of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site; a link that leads nowhere ends its making."""
    out = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    return out


def test_the_reference_has_all_that_is_public(site: Path) -> None:
    listed = re.findall(r"^::: autotune\.([\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    own = {name: getattr(autotune, name) for name in autotune.__all__ if name != "kernels"}
    public = {f"{value.__module__.removeprefix('autotune.')}.{name}": value for name, value in own.items()}
    assert Counter(listed) == Counter([*public, "sweep.run.Sweep"])
    html = (site / "api.html").read_text()
    assert [name for name in listed if f'id="autotune.{name}"' not in html] == []
    first = {name: (value.__doc__ or "").strip().split("\n")[0].split("`")[0] for name, value in public.items()}
    text = unescape(re.sub(r"<[^>]+>", "", html))
    assert [name for name, line in first.items() if not line or line.rstrip() not in text] == []


def test_pages_lead_to_one_another_and_load_nothing_from_elsewhere(site: Path) -> None:
    index, about = (site / "index.html").read_text(), (site / "about.html").read_text()
    for page in ("first-kernel.html", "notebooks/first-sweep.html", "api.html", "about.html", "contributing.html"):
        assert f'href="{page}' in index, page
    assert 'href="index.html"' in about and 'src="pictures/overview.svg"' in about
    assert 'href="source/autotune/search/sampler.py.html"' in (site / "contributing.html").read_text()
    loaded = re.compile(r"<(?:script|img|link)\b[^>]*\b(?:src|href)=\"?(https?:[^\" >]+)")
    assert {url for page in site.rglob("*.html") for url in loaded.findall(page.read_text())} == set()


def test_the_front_page_is_the_head_of_the_readme_beside_pages_in_groups(site: Path) -> None:
    index = (site / "index.html").read_text()
    for shown in ('src="pictures/overview.svg"', "autotune sweep --kernel ddc", "x the default", "I have a kernel."):
        assert shown in index, shown
    assert "Five minutes" not in index, "that is a section of README"
    titles = [" ".join(title.split()) for title in re.findall(r'<span class="md-ellipsis">([^<]+)', index)]
    groups = ("Start", "Kernels", "Sweeps", "Results", "Packages", "Engines", "Reference", "Design", "Lab notes")
    assert [title for title in dict.fromkeys(titles) if title in groups] == list(groups)
    assert "Writing a kernel" in titles and not any(title.endswith(".md") for title in titles)


@pytest.mark.parametrize(
    ("page", "link", "led"),
    [
        ("pages.md", "[a](../README.md)", "[a](about.md)"),
        ("index.md", "[a](docs/README.md)", "[a](pages.md)"),
        ("design/house.md", "[a](../../CONTRIBUTING.md#style)", "[a](../contributing.md#style)"),
        ("search.md", "[a](../autotune/search/sampler.py)", "[a](source/autotune/search/sampler.py.md)"),
        ("about.md", "[a](docs/report.md#one-sweep)", "[a](report.md#one-sweep)"),
        ("about.md", "![a](docs/pictures/report.png)", "![a](pictures/report.png)"),
        ("about.md", "all in [results/](results/).", "all in results/."),
        ("pages.md", "[a](notebooks/first-sweep.ipynb)", "[a](notebooks/first-sweep.md)"),
        ("notebooks/first-sweep.md", "[a](../report.md)", "[a](../report.md)"),
        ("pages.md", "[a](https://a.b/c) [b](#d)", "[a](https://a.b/c) [b](#d)"),
        ("pages.md", "[a](nowhere.md)", "[a](nowhere.md)"),
    ],
)
def test_links_are_led_to_pages_of_the_site(page: str, link: str, led: str) -> None:
    hook, at = module(DOCS / "site" / "hook.py"), type("Page", (), {"file": type("File", (), {"src_uri": page})})
    assert hook.on_page_markdown(link, at, {}, []) == led


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_are_stored_with_their_small_outputs(path: Path) -> None:
    run = module(DOCS / "notebooks" / "run.py")
    stored, ran = nbformat.read(path, as_version=4), run.ran(path)
    drawn = [
        output for cell in ran.cells for output in cell.get("outputs", ()) if run.PICTURE in output.get("data", {})
    ]
    assert drawn, "sweep.plot() is a picture"
    assert outputs(stored) == outputs(run.stored(ran)), "python docs/notebooks/run.py stores them anew"
    assert len(path.read_bytes()) < 40_000


def outputs(notebook: Any) -> list[tuple[str, list[list[str]]]]:
    """The kinds of the outputs of each cell: their numbers differ from run to run."""
    return [(cell.source, [sorted(output.data) for output in cell.get("outputs", ())]) for cell in notebook.cells]
