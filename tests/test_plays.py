"""A sample of `python -m tests.plays`, and faults that it must find."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune.engines.network.senders import SenderTally
from autotune.engines.service import alarms
from autotune.engines.x import output

from .plays.compared import SENT, faults, write
from .plays.drawn import EACH, TCP, UDP, Play, draw
from .waiting import DEADLINE_S

SEED = 20


def found(play: Play, folder: Path) -> list[str]:
    write(play, folder)
    return faults(play, folder, DEADLINE_S)


@pytest.mark.parametrize(
    ("kind", "transport"),
    [("two senders", UDP), ("gap of all", UDP), ("far clock", EACH), ("graceful restarts", TCP), ("silent", TCP)],
)
def test_a_play_leads_to_what_was_written_before(kind: str, transport: str, tmp_path: Path) -> None:
    assert found(draw(SEED, kind, transport), tmp_path) == []


def test_what_is_expected_of_a_play_follows_from_its_seed(tmp_path: Path) -> None:
    assert all(write(draw(seed), tmp_path) == write(draw(seed), tmp_path) for seed in range(100))


def test_a_wrong_expectation_is_found(tmp_path: Path) -> None:
    play = draw(SEED, "doubled", UDP)
    n = write(play, tmp_path).senders[name := play.names[play.troubles[0].sender]]["repeated"][0]
    said = json.loads((tmp_path / SENT).read_text())
    said["expected"]["senders"][name]["repeated"] = [n + 1, n + 1]
    (tmp_path / SENT).write_text(json.dumps(said))
    assert n > 0 and faults(play, tmp_path, DEADLINE_S) == [f"{name}: repeated is {n}, must be {n + 1}"]


def a_counter_stands_still(patch: pytest.MonkeyPatch) -> None:
    right = SenderTally.senders

    def senders(self: SenderTally, names: Any) -> Any:
        return [replace(each, counts=each.counts | {"off_grid": 0}) for each in right(self, names)]

    patch.setattr(SenderTally, "senders", senders)


def dumps_are_conjugate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(output, "conjugate", lambda visibilities: None)


def nobody_is_named(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alarms, "SILENT_S", 1e9)


@pytest.mark.parametrize(
    ("plant", "kind", "text"),
    [
        (a_counter_stands_still, "clock off by samples", "off_grid is 0, must be "),
        (dumps_are_conjugate, "nothing", "WRONG: the dump of heap "),
        (nobody_is_named, "silent", "is silent, and not named"),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    kind: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    play = replace(draw(SEED, kind, UDP), bits=4)
    assert any(text in fault for fault in found(play, tmp_path))
