"""The winner's outputs over many launches: a config that is wrong once in a hundred launches does not win."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune import Config, TrialFailure
from autotune.cli.commands.show import show
from autotune.devices import Target, device_module, find_device
from autotune.records.folder import SweepFolder
from autotune.rendering.render import render
from autotune.runtime.lookup import evidence_text
from autotune.runtime.wisdom import Evidence
from autotune.source.registry import load_kernel
from autotune.sweep.run import Sweep
from autotune.trial import measure
from autotune.trial.case import small_case
from autotune.trial.measure import repeated
from autotune.trial.worker import Job, Worker

from ..conftest import EXAMPLE

PROBLEM = {"n_chan": 256}


def sweep(target: Target, results: Path, trials: int = 20, **settings: int) -> Sweep:
    return autotune.sweep(
        EXAMPLE, problem=PROBLEM, device=target.identifier, results=results, trials=trials, **settings
    )


@pytest.mark.quick
def test_launches_are_counted_and_recorded(target: Target, tmp_path: Path) -> None:
    found = sweep(target, tmp_path, trials=3, checked_launches=12)
    outcome = SweepFolder(found.path).outcome()
    assert outcome is not None
    n = found.finalists[0].checked_launches
    assert 1 <= n <= outcome.checked_launches == 12, "a second may not be enough for all"
    assert outcome.winner.checked_launches == n and {"launches", "carried"} <= set(outcome.winner.checks)
    assert not any(finalist.checked_launches or "launches" in finalist.checks for finalist in outcome.finalists[1:])
    autotune.emit([found.path], tmp_path / "tuned", kernels=[EXAMPLE])
    (entry,) = json.loads((tmp_path / "tuned" / "wisdom.json").read_text())["entries"]
    assert entry["evidence"]["checked_launches"] == n


def test_the_proof_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = sweep(find_device("simulated:0"), tmp_path, checked_launches=12)
    show([found.path])
    assert "checked 12 further launches, all correct" in " ".join(capsys.readouterr().out.split())
    assert "12 further launches checked, all correct" in evidence_text(Evidence(median_s=1e-5, checked_launches=12))


def test_more_of_them_are_another_final_round(tmp_path: Path) -> None:
    simulated = find_device("simulated:0")
    sweep(simulated, tmp_path, checked_launches=3)
    assert not sweep(simulated, tmp_path, checked_launches=3).finalists
    assert sweep(simulated, tmp_path, checked_launches=4).finalists[0].checked_launches == 4


def test_one_wrong_launch_among_many_is_found(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = load_kernel(EXAMPLE)
    problem = kernel.problem(PROBLEM)
    config = Config(kernel.default)
    binary = target.module.compile(render(kernel, problem, config), target.device)
    session = device_module(target.kind).open(target.identifier)
    case = small_case(kernel, problem)
    monkeypatch.setattr(measure, "LONGEST_REPEATS_S", 60.0)
    assert repeated(session, kernel, case, config, binary, 5) == 5
    function = session.load(binary, session.timed_build)
    samples, n_launches = type(function).samples, 0

    def wrong_once(self: Any, launch: Any, arguments: Any, n: int, *, cold: bool) -> Any:
        nonlocal n_launches
        taken = samples(self, launch, arguments, n, cold=cold)
        n_launches += 1
        if n_launches == 3:
            written = next(
                b for b, spec in zip(arguments, kernel.arrays(problem).values(), strict=False) if spec.written
            )
            spoilt = written.read()
            spoilt.reshape(-1)[7] += 1
            written.write(spoilt)
        return taken

    monkeypatch.setattr(type(function), "samples", wrong_once)
    with pytest.raises(TrialFailure, match=r"launch 3 of 5 with the same inputs: .*1 of ") as raised:
        repeated(session, kernel, case, config, binary, 5)
    assert raised.value.status == "wrong"


def test_who_is_wrong_then_is_wrong_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = find_device("simulated:0")
    plain = sweep(simulated, tmp_path / "plain").best
    assert plain is not None
    repeat = Worker.repeat

    def races(self: Worker, job: Job, n: int, deadline_s: float) -> int:
        if job.config == plain.config:
            raise TrialFailure("wrong", "launch 37 of 500 with the same inputs: out[3] is 1, reference 2")
        return repeat(self, job, n, deadline_s)

    monkeypatch.setattr(Worker, "repeat", races)
    found = sweep(simulated, tmp_path / "races")
    assert found.best is not None and found.best.config == found.finalists[0].config != plain.config
    assert found.counts["wrong"] == 1
    trials = SweepFolder(found.path).trials()
    refuted = next(t for t in trials if t.config == plain.config)
    assert refuted.status == "wrong" and refuted.median_s is None and "launch 37" in refuted.message
    assert len(trials) == 20 and sorted(t.number for t in trials) == list(range(20))
    again = sweep(simulated, tmp_path / "races", checked_launches=2)
    assert plain.config not in [finalist.config for finalist in again.finalists]
    assert np.isnan(autotune.load(found.path).set_index("number")["median_s"][refuted.number])
