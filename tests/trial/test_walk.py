"""The walk of one config through the code: it is short, nothing calls back, and its picture shows it as it is."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def walk() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module("walk")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def walked(walk: Any) -> Any:
    return walk.walk("simulated:0")


def test_a_config_enters_few_modules_and_no_station_twice(walk: Any, walked: Any) -> None:
    assert len(walked.modules) <= walk.MOST_MODULES, walked.modules
    assert [module for module in walked.twice if not module.startswith(walk.SHARED)] == []
    assert walked.n_trips == {"compile process": 1, "device's process": 1}


def test_its_picture_is_of_today(walked: Any) -> None:
    told = json.loads((ROOT / "docs" / "pictures" / "walk.json").read_text())
    assert told == json.loads(json.dumps(walked.as_json())), (
        "python benchmarks/walk.py --json > docs/pictures/walk.json, and python docs/pictures/make.py"
    )


def test_what_is_entered_twice_is_found(walk: Any) -> None:
    steps = [("parent", "records/trial.py", by) for by in ("trial/stations.py", "records/folder.py")]
    found = walk.Walk("WGS=64", tuple(walk.Step(*step) for step in steps), (), {})
    assert found.twice == {"records/trial.py in the parent": ["trial/stations.py", "records/folder.py"]}
