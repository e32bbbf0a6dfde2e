"""`autotune show --first-use` lists what was tuned on this machine, and needs no record."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.runtime.tune_once import Attempt, Surroundings, TunedHere, keep_outcome

from ..commands import ended, typed
from ..recorded import DEFAULT, H200, TALL, WIDE

AROUND = Surroundings(H200, "580.82.07", "NVRTC 13.0.88 sm_90", "0" * 64)
ATTEMPTS = (
    Attempt(WIDE, "predicted", "0" * 12, "measured", "", 2e-5, 1.9e-5, 2.1e-5, 40, 32),
    Attempt(DEFAULT, "default", "1" * 12, "measured", "", 3e-5, 2.9e-5, 3.1e-5, 40, 32),
    Attempt(TALL, "nearest record", "2" * 12, "wrong", "power[3] is 1.0, reference 2.0"),
)
FIRST = TunedHere(
    "detect", {"n_time": 100, "n_chan": 700}, AROUND, "2026-11-27T07:00:00+00:00", 3.25, ATTEMPTS, 0, ("n_chan=1",)
)
NONE = replace(FIRST, problem={"n_time": 100, "n_chan": 800}, winner=None, why="none is right", attempts=ATTEMPTS[2:])


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    for one in (FIRST, NONE):
        assert keep_outcome(one) is None
    return tmp_path / "cache"


@pytest.mark.quick
def test_each_outcome_has_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed(["show", "--first-use"], monkeypatch)
    told = capsys.readouterr().out
    for text in ("n_time=100,n_chan=700", "NVIDIA H200", "2026-11-27", "2 of 3", "20 us", "1.500", "none is right"):
        assert text in told, told
    assert "`autotune sweep` of such a problem tries its config first" in told


def test_in_full_it_has_each_candidate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed(["show", "--first-use", "--all", "--kernel", "detect"], monkeypatch)
    told = capsys.readouterr().out
    for text in ("driver 580.82.07", "checked at n_chan=1", "nothing was chosen: none is right", "nearest record"):
        assert text in told, told
    assert "power[3] is 1.0, reference 2.0" in told and "fastest" in told


def test_as_json_it_has_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    typed(["show", "--first-use", "--json"], monkeypatch)
    first, none = json.loads(capsys.readouterr().out)
    assert first["attempts"][0]["config"] == dict(WIDE) and first["winner"] == 0 and none["winner"] is None
    assert first["surroundings"]["device"]["name"] == "NVIDIA H200"


def test_there_may_be_nothing(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(["show", "--first-use", "--kernel", "ddc"], monkeypatch)
    assert capsys.readouterr().out == f"nothing of ddc was tuned at first use ({own_cache / 'first-use'})\n"
    code, told = ended(["show"], capsys, monkeypatch)
    assert code == 2 and told.startswith("autotune: name a recorded sweep") and told.count("\n") == 1
