"""Pages for users do what they say: each block of commands and of Python runs, and prints what the page shows.

Blocks that need a GPU or a network say so in a comment, and so do those that are left to thorough tests.
"""

import re
import shutil
from pathlib import Path

import pytest

from autotune.campaign.campaign_plan import read_plan
from tests.page_recordings import RECORDINGS
from tests.pages import Reader, prints, steps

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "kernels").glob("*.md"))]
PAGES = [page for page in PAGES if steps(page.read_text())]
ACCUMULATE, DDC, DEQUANTIZE = (f"results/NVIDIA_H200/{kernel}" for kernel in ("accumulate", "ddc", "dequantize"))
BEFORE = {  # what lies in the folder of a page's reader
    "analysis": {DDC: DDC},
    "campaigns": {"results-a": ACCUMULATE, "results-b": ACCUMULATE, ACCUMULATE: ACCUMULATE},
    "ddc": {DDC: DDC},
    "from-cu-to-definition": {"examples": "examples"},
    "exports": {ACCUMULATE: ACCUMULATE},
    "answers": {ACCUMULATE: ACCUMULATE},
    "report": {"results-new": ACCUMULATE, "results-old": ACCUMULATE, ACCUMULATE: ACCUMULATE},
    "recordings": {"examples": "examples"},
    "results": {ACCUMULATE: ACCUMULATE},
    "runtime": {"my": "docs/example", ACCUMULATE: ACCUMULATE},
    "search": {DEQUANTIZE: DEQUANTIZE},
}
REASONS = re.compile(r"needs (?:a GPU|another host).*|is a part of (?P<file>\S+)|is run by (?P<test>\S+)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).with_suffix("").as_posix()


def reads(page: Path, folder: Path, reader: Reader) -> None:
    """Works through a page in a folder that has what it needs."""
    (folder / "docs").symlink_to(DOCS)
    for at, source in BEFORE.get(page.stem, {}).items():
        shutil.copytree(ROOT / source, folder / at)
    reader.monkeypatch.chdir(folder)
    reader.monkeypatch.syspath_prepend(folder)
    reader.monkeypatch.setenv("COLUMNS", "200")
    if page.stem in RECORDINGS:
        RECORDINGS[page.stem]()
    reader.follows(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_do_what_they_say(
    page: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads(page, tmp_path, Reader(capfd, monkeypatch, thorough=False))


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_do_all_that_they_say(
    page: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads(page, tmp_path, Reader(capfd, monkeypatch, thorough=True))


@pytest.mark.quick
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_only_what_cannot_run_here_is_left_out(page: Path) -> None:
    for step in steps(page.read_text()):
        if (why := step.marks.get("not run")) is not None:
            known = REASONS.fullmatch(why)
            assert known, f"line {step.line}: {why}"
            assert not known["test"] or page.name in (ROOT / known["test"]).read_text()
            of_file = (
                {line.strip() for line in (ROOT / known["file"]).read_text().splitlines()} if known["file"] else ()
            )
            assert not known["file"] or {line.strip() for line in step.text.splitlines()} <= {*of_file, ""}


def test_the_campaign_of_the_page_is_read(tmp_path: Path) -> None:
    (file,) = (step for step in steps((DOCS / "campaigns.md").read_text()) if step.kind == "file")
    (tmp_path / "ddc.toml").write_text(file.text)
    plan = read_plan(tmp_path / "ddc.toml")
    assert (len(plan.values), plan.n_pilots, plan.settings.trials, plan.devices) == (64, 4, 20, ("cuda:0", "cuda:1"))


PAGE = """Text.

<!-- not run: needs a GPU -->

    autotune sweep --kernel ddc

<!-- file: x.toml -->
```toml
a = 1
```

    pip install autotune
    autotune show results --all \\
        --json > x.json                 what is beside it

```text
best 2 ms ... A=1,B=2
```

    print(1)
"""


@pytest.mark.quick
def test_steps_of_a_page() -> None:
    left_out, file, commands, shown = steps(PAGE)
    assert (left_out.kind, left_out.marks) == ("commands", {"not run": "needs a GPU"})
    assert (file.kind, file.marks["file"], file.text) == ("file", "x.toml", "a = 1\n")
    assert commands.commands() == [["show", "results", "--all", "--json", ">", "x.json"]] and commands.line == 12
    assert shown.kind == "text" and shown.text == "best 2 ms ... A=1,B=2\n"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("shown", "printed", "is_so"),
    [
        ("best 2 ms ... A=1,B=2", "best  13.5 us   0  A=8\n", True),
        ("3 passed", "2 passed", False),
        ("1.4 x the default", "no better than the default", True),
        ("a\n...\nc", "a\nb\nc", True),
        ("c\na", "a\nb\nc", False),
    ],
)
def test_what_is_printed_is_compared_with_what_is_shown(shown: str, printed: str, is_so: bool) -> None:
    assert prints(shown, printed) == is_so


@pytest.mark.quick
def test_numbers_count_for_nothing_where_fewer_configs_ran() -> None:
    assert prints("3 passed", "2 passed", numbers=False) and not prints("3 passed", "2 failed", numbers=False)
