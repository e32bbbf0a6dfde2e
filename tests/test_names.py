"""A name has one meaning: types, functions and modules that several rooms define are listed here, and get fewer."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\d+(?:\.\d+)?")
PAGE_OF_USERS = re.compile(r"\(`docs/[^`]*`\)")
WITHOUT_SUBJECT = {"docstrings": 0, "comments": 12}
SEVERAL: dict[str, set[str]] = {"types": set(), "functions": set(), "modules": set()}


@pytest.fixture(scope="module")
def house() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module("house")
    finally:
        sys.path.pop(0)


def test_names_with_several_meanings_only_get_fewer(house: Any) -> None:
    for kind, names in house.House(ROOT).names_of_several_meanings().items():
        new = {name: places for name, places in names.items() if name not in SEVERAL[kind]}
        assert not new, f"these {kind} are defined in several modules; give each a name of its own: {new}"
        gone = SEVERAL[kind] - names.keys()
        assert not gone, f"take them out of SEVERAL in {Path(__file__).name}: {sorted(gone)}"


def test_sentences_without_a_subject_only_get_fewer(house: Any) -> None:
    found = house.measures(house.House(ROOT))
    for kind, most in WITHOUT_SUBJECT.items():
        n = int(found[f"{kind} that begin without a subject"].split()[0])
        assert n <= most, f"{n} {kind} begin without a subject; say who does what"
        assert n >= most, f"set WITHOUT_SUBJECT[{kind!r}] in {Path(__file__).name} to {n}"


def test_the_page_of_the_house_is_of_today(house: Any) -> None:
    before = house.PAGE.read_text().split("\n")
    today = house.page("\n".join(before), house.House(ROOT)).split("\n")
    stale = [new for old, new in zip(before, today, strict=True) if not _is_near(old, new)]
    assert len(before) == len(today) and not stale, f"python benchmarks/house.py --write, since {stale}"


def _is_near(before: str, now: str) -> bool:
    """Whether lines say the same with numbers that differ by a tenth or by two, so that not each edit renews a page."""
    old, new = ([float(number) for number in NUMBER.findall(line)] for line in (before, now))
    same_words = NUMBER.split(PAGE_OF_USERS.sub("", before)) == NUMBER.split(PAGE_OF_USERS.sub("", now))
    return same_words and all(abs(a - b) <= max(2, 0.1 * a) for a, b in zip(old, new, strict=True))
