"""The outputs that docs/analysis.md shows below its programs with pandas are what these print."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = re.compile(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", re.DOTALL)


def test_the_programs_print_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, _, text = (ROOT / "docs" / "analysis.md").read_text().partition("## With pandas")
    programs = PROGRAM.findall(text)
    assert len(programs) == 2
    names: dict[str, object] = {}
    for program, shown in programs:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(program, names)
        assert lines(printed.getvalue()) == lines(shown), f"the page should show\n{printed.getvalue()}"


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]
