"""Writes the table of a trial's figures in docs/results.md from their declaration in autotune/records/trial.py.

    python docs/figures.py

`tests/test_docs.py` compares the two.
"""

from itertools import groupby
from pathlib import Path

from autotune.records.figure import figures_of
from autotune.records.trial import Trial

PAGE = Path(__file__).with_name("results.md")
HEAD = "| column | unit | content |\n| --- | --- | --- |\n"


def table() -> str:
    """Returns the rows, one for neighbours that share their meaning."""
    rows = []
    for meaning, group in groupby(figures_of(Trial).items(), key=lambda item: item[1].meaning):
        members = list(group)
        names = ", ".join(f"`{name}`" for name, _ in members)
        units = ", ".join(dict.fromkeys(figure.unit for _, figure in members if figure.unit))
        rows.append(f"| {names} | {units + ' ' * bool(units)}| {meaning} |\n")
    return "".join(rows)


def renewed(page: str) -> str:
    """Returns the text of the page with the table as it is now."""
    before, after = page.split(HEAD)
    return before + HEAD + table() + after[after.index("\n\n") + 1 :]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
