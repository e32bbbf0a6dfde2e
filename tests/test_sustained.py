"""The figure of launches back to back: asked for, recorded with the finalists, and not taken twice."""

import json
from pathlib import Path

import pytest

import autotune
from autotune.devices import Target, find_device
from autotune.sweep import Sweep

from .conftest import EXAMPLE


def sweep(target: Target, results: Path, **settings: float) -> Sweep:
    size = {"n_chan": 256}
    return autotune.sweep(EXAMPLE, problem=size, device=target.identifier, results=results, trials=3, **settings)


def test_each_finalist_has_both_rates(target: Target, tmp_path: Path) -> None:
    found = sweep(target, tmp_path, sustained_s=0.05)
    verdict = json.loads((found.path / "verdict.json").read_text())
    for finalist in verdict["finalists"]:
        figure = finalist["sustained"]
        assert figure["duration_s"] > 0.01
        assert figure["n"] >= 1
        assert 0 < figure["sustained_s"] < 1
        assert 0 < figure["short_s"] < 1


def test_it_is_taken_once_and_when_it_is_missing(tmp_path: Path) -> None:
    simulated = find_device("simulated:0")
    plain = sweep(simulated, tmp_path)
    assert plain.finalists[0].sustained is None
    asked = sweep(simulated, tmp_path, sustained_s=0.05)
    figure = asked.finalists[0].sustained
    assert figure is not None
    assert figure.sustained_s == pytest.approx(1.1 * figure.short_s, rel=0.05)  # as the simulated device has it
    again = sweep(simulated, tmp_path, sustained_s=0.05)
    assert not again.finalists, "nothing is measured again"
