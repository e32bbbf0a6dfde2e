"""Engines that ask for it tune their kernels at first use: before anything streams, and once."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune import UsageError
from autotune.engines.kernels import first_tuning
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.runtime.tune_once import all_outcomes, checked_outcome

from ...host_files import with_host_files
from .test_choice import BACKEND, DEFAULT, FAST, FIELDS, SLOW, recorded

SMALL = {**FIELDS, "n_channels": 5}
STARTS = "accumulate[n_accumulators=2,n_channels=5,n_receivers=4]: "


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(with_host_files(tmp_path / "cache")))
    return tmp_path / "cache"


def asked(told: list[str], fields: Mapping[str, Any] = SMALL, **given: Any) -> Any:
    """The config of a launcher on the host."""
    kernels = Kernels(BACKEND, told.append, kernels_on_host=True, **given)
    return kernels.launcher("accumulate", **fields)[0].config


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """The requests to a tuner that finds the last candidate to be the fastest."""
    requests: list[Mapping[str, Any]] = []

    def answer(request: Mapping[str, Any], tell: Any) -> Mapping[str, Any]:
        requests.append(request)
        asked = checked_outcome(request["outcome"].encode())
        times = {"median_s": 1e-5, "q1_s": 1e-5, "q3_s": 1e-5, "n_samples": 9}
        attempts = tuple(replace(one, status="measured", **times) for one in asked.attempts)
        return {"outcome": replace(asked, attempts=attempts, winner=len(attempts) - 1).as_json()}

    monkeypatch.setattr(first_tuning, "tune_first", answer)
    return requests


def test_a_problem_near_the_recorded_ones_is_tuned_once_on_the_engines_device(tmp_path: Path) -> None:
    results, told = recorded(tmp_path / "results", SLOW), list[str]()
    config = asked(told, results=results, tune="first")
    start, line = told
    assert start == f"{STARTS}first use on host, trying 4 configs"
    assert ", from this machine (first use: the fastest of 4 configs on this machine's host, " in line
    assert line.endswith("; expected slowdown: measured here as the fastest of these; a sweep may find a faster one")
    (outcome,) = all_outcomes(pytest.fail)
    assert [one.origin for one in outcome.attempts] == ["default", "nearest", "predicted", "predicted"]
    assert len(outcome.checked) > 1 and {DEFAULT, SLOW} < {one.config for one in outcome.attempts}
    again = list[str]()
    assert asked(again, results=results, tune="first") == config and again == [line], "it is known now"


@pytest.mark.quick
def test_what_is_exactly_recorded_is_not_tuned(tmp_path: Path, answered: list[Mapping[str, Any]]) -> None:
    results = recorded(recorded(tmp_path / "results", SLOW), FAST, n_channels=50)
    assert asked([], FIELDS, results=results, tune="first") == SLOW and not answered
    asked([], results=results, tune="first")
    configs = [one.config for one in checked_outcome(answered[0]["outcome"].encode()).attempts]
    assert len(answered) == 1 and SLOW in configs[:3] and DEFAULT in configs[:3]


def test_the_environment_asks_for_it_too(
    tmp_path: Path, answered: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = recorded(tmp_path / "results", SLOW)
    assert asked([], results=results) == SLOW and not answered
    monkeypatch.setenv("AUTOTUNE_FIRST_USE", "2 s")
    asked([], results=results)
    assert len(answered) == 1 and answered[0]["seconds"] == 2.0
    monkeypatch.setenv("AUTOTUNE_FIRST_USE", "often")
    with pytest.raises(UsageError, match="AUTOTUNE_FIRST_USE='often' must be"):
        asked([], results=results)


def test_without_a_record_there_is_nothing_to_compare(answered: list[Mapping[str, Any]]) -> None:
    told: list[str] = []
    assert asked(told, tune="first") == DEFAULT and not answered
    assert told[0].startswith("accumulate: without a first use: no config but the default is known to be promising")


def test_an_engine_of_numpy_tunes_nothing(answered: list[Mapping[str, Any]]) -> None:
    assert Kernels(HostBackend(), print, tune="first").uses_numpy and not answered


def test_an_unknown_effort_names_this_one_too() -> None:
    with pytest.raises(UsageError, match="unknown effort 'hasty'; choose one of first, quick, normal, full"):
        asked([], tune="hasty")
