"""Names of sizes and of inputs are found once for each record, and again where what they follow from has changed."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from autotune.core import definition
from autotune.core.kept import keep
from autotune.emit import winners
from autotune.emit.winners import gather, valid
from autotune.records.checks_made import EDGE_SIZES, TIMED_SIZE

from ..conftest import EXAMPLE
from ..recorded import H200, KERNELS, record
from .conftest import MEDIANS

BY_RULE = {"rule": 2, "seed": 3, "checks": (TIMED_SIZE, EDGE_SIZES), "verified_on": ()}


@pytest.fixture(autouse=True)
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kept names, in a cache of the test's own."""
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "names"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> "Counter[str]":
    """How often each of what takes long was called since the count was cleared."""
    counts = Counter[str]()

    def counted(room: Any, name: str) -> None:
        work = getattr(room, name)
        monkeypatch.setattr(room, name, lambda *given: counts.update([name]) or work(*given))

    counted(definition, "drawn_sizes")
    counted(winners, "call_order")
    return counts


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for n_time in (100, 200):
        record(tmp_path / "results", H200, MEDIANS, n_time=n_time, **BY_RULE)
    return tmp_path / "results"


def test_a_second_emit_finds_no_names_again(results: Path, calls: "Counter[str]") -> None:
    first = gather(valid([results], kernels=KERNELS))
    assert calls == {"drawn_sizes": 2, "call_order": 2}
    assert all(len(entry.evidence.verified_on) > 3 for entry in first.wisdom.entries)
    calls.clear()
    assert gather(valid([results], kernels=KERNELS)).wisdom == first.wisdom and not calls


def test_only_a_changed_record_is_looked_at_again(results: Path, calls: "Counter[str]", tmp_path: Path) -> None:
    old = gather(valid([results], kernels=KERNELS)).wisdom
    calls.clear()
    shutil.rmtree(results)
    record(results, H200, MEDIANS, n_time=100, **BY_RULE)
    record(results, H200, MEDIANS, n_time=200, **{**BY_RULE, "seed": 4})
    new = gather(valid([results], kernels=KERNELS)).wisdom
    assert calls == {"drawn_sizes": 1}
    same = [a.evidence.verified_on == b.evidence.verified_on for a, b in zip(old.entries, new.entries, strict=True)]
    assert same == [True, False]


def test_a_changed_definition_is_asked_again(results: Path, calls: "Counter[str]", tmp_path: Path) -> None:
    old = gather(valid([results], kernels=KERNELS)).wisdom
    calls.clear()
    folder = shutil.copytree(Path(EXAMPLE).parent, tmp_path / "changed")
    with open(folder / Path(EXAMPLE).name, "a") as file:
        file.write("# another text\n")
    new = gather(valid([results], kernels=(str(folder / Path(EXAMPLE).name),))).wisdom
    assert calls == {"drawn_sizes": 2, "call_order": 2}
    assert new.entries == old.entries


@pytest.mark.parametrize("damage", ["cut", "foreign", "[]", '{"a": ["b", 1]}', '{"a": "b"}'])
def test_a_file_that_is_damaged_or_of_others_is_ignored(
    results: Path, calls: "Counter[str]", names: Path, damage: str
) -> None:
    old = gather(valid([results], kernels=KERNELS)).wisdom
    calls.clear()
    (path,) = names.glob("detect-*.names")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif damage == "foreign":
        path.chmod(0o666)
    else:
        keep(path, damage.encode(), {})
    assert gather(valid([results], kernels=KERNELS)).wisdom == old
    assert calls == {"drawn_sizes": 2, "call_order": 2}
    assert len(json.loads(path.read_bytes())) == 4, "it is whole again"
