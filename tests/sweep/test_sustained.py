"""The figure of launches back to back: asked for, recorded with the finalists, and not taken twice."""

from pathlib import Path

import pytest

import autotune
from autotune import TrialFailure
from autotune.devices import Target, find_device
from autotune.records.folder import SweepFolder
from autotune.records.measurement import Sustained
from autotune.sweep.run import Sweep
from autotune.trial.worker import Job, Worker

from ..conftest import EXAMPLE


def sweep(target: Target, results: Path, trials: int = 3, **settings: float) -> Sweep:
    size = {"n_chan": 256}
    return autotune.sweep(EXAMPLE, problem=size, device=target.identifier, results=results, trials=trials, **settings)


def test_each_finalist_has_both_rates(target: Target, tmp_path: Path) -> None:
    found = sweep(target, tmp_path, sustained=0.05)
    outcome = SweepFolder(found.path).outcome()
    assert outcome is not None and [f.median_s for f in outcome.finalists] == [f.median_s for f in found.finalists]
    for finalist in outcome.finalists:
        figure = finalist.sustained
        assert figure is not None and figure.duration_s > 0.01
        assert figure.n >= 1
        assert 0 < figure.sustained_s < 1
        assert 0 < figure.short_s < 1


def test_it_is_taken_once_and_when_it_is_missing(tmp_path: Path) -> None:
    simulated = find_device("simulated:0")
    plain = sweep(simulated, tmp_path)
    assert plain.finalists[0].sustained is None
    asked = sweep(simulated, tmp_path, sustained=0.05)
    figure = asked.finalists[0].sustained
    assert figure is not None
    assert figure.sustained_s == pytest.approx(1.1 * figure.short_s, rel=0.05)  # as the simulated device has it
    again = sweep(simulated, tmp_path, sustained=0.05)
    assert not again.finalists, "nothing is measured again"


def test_who_fails_at_it_is_no_finalist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a variant does that waits for ever once in a thousand launches: fast and right until then."""
    simulated = find_device("simulated:0")
    winner = sweep(simulated, tmp_path / "plain", trials=20).best
    assert winner is not None
    sustain = Worker.sustain

    def fails_once(self: Worker, job: Job, seconds: float, deadline_s: float) -> Sustained:
        if job.config == winner.config:
            raise TrialFailure("timed_out", "the run of launches took longer than 60 s")
        return sustain(self, job, seconds, deadline_s)

    monkeypatch.setattr(Worker, "sustain", fails_once)
    found = sweep(simulated, tmp_path / "sustained", trials=20, sustained=0.05)
    assert found.finalists
    assert winner.config not in [finalist.config for finalist in found.finalists]
    assert found.best is not None and found.best.config == found.finalists[0].config
