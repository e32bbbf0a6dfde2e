"""Sweeps for energy, for metrics, and for two objectives at once, on the simulated device, which has a meter."""

from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune import UsageError
from autotune.analysis.show import front_of
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.records.objectives import Objective, Objectives, front, values_of
from autotune.records.record import SweepRecord
from autotune.sweep.run import Sweep

from ..commands import ended, typed
from ..conftest import EXAMPLE

PRODUCT = {"edp": "energy * time * (power > 0)"}


def sweep(results: Path, **settings: Any) -> Sweep:
    given: dict[str, Any] = {"trials": 60, "energy_time": 0.01, "sampler": "exhaustive", "finalists": 2}
    return autotune.sweep(
        EXAMPLE, problem={"n_chan": 256}, device="simulated:0", results=results, **{**given, **settings}
    )


def test_the_most_frugal_wins_and_time_alone_finds_another(tmp_path: Path) -> None:
    frugal = sweep(tmp_path / "energy", objectives=("energy",)).best
    fast = sweep(tmp_path / "time").best
    assert frugal is not None and fast is not None and fast.joules is None
    table = autotune.load(tmp_path / "energy").dropna(subset="median_s")
    assert frugal.joules == pytest.approx(table.joules.min())
    assert frugal.config != fast.config, "the simulated power is chosen so"


def test_a_metric_may_be_the_objective_and_each_trial_has_it(tmp_path: Path) -> None:
    metrics = {"gbps": "8 * n_time * n_chan / time / 1e9", "half": "gbps / 2", "undefined": "1 / (BLOCK_T - BLOCK_T)"}
    found = sweep(tmp_path, objectives=("max:half",), metrics=metrics)
    assert found.best is not None and found.finalists[0].relation == "best"
    table = autotune.load(tmp_path).dropna(subset="median_s")
    assert (table["metric.half"] * 2 == table["metric.gbps"]).all() and "metric.undefined" not in table
    n_time = table["problem.n_time"].iloc[0]
    assert found.best.config == max(found.finalists, key=lambda f: f.metrics["half"]).config
    assert found.finalists[0].metrics["half"] == pytest.approx(4e-9 * n_time * 256 / found.finalists[0].median_s)


def test_two_objectives_give_the_front_that_the_record_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sweep(tmp_path, objectives=("time", "energy"), metrics=PRODUCT)
    record = SweepRecord.of(find_sweeps(tmp_path)[0])
    objectives = record.objectives
    shown = front_of(record, objectives)
    values = [tuple((values_of(objectives, each) or {}).values()) for each in shown]
    assert len(values) > 1 and values == sorted(values)
    assert [joules for _, joules in values] == sorted((joules for _, joules in values), reverse=True)
    every = [(t.median_s, t.joules) for t in record.trials if t.median_s and t.joules]
    best = front(objectives, record.trials)
    for s, joules in every:  # nobody beats a config of the front in both
        assert not any(s < t.median_s and joules < t.joules for t in best if t.median_s and t.joules)
    assert found.best is not None and found.best.config == shown[0].config, "the first objective decides"
    typed(["show", str(tmp_path)], monkeypatch)
    text = capsys.readouterr().out
    assert "front: energy" in text and "edp" in text and " W" in text and "of energy a launch" in text


def test_optuna_searches_by_two_objectives(tmp_path: Path) -> None:
    found = sweep(tmp_path, objectives=("time", "energy"), sampler="auto", trials=12)
    assert found.sampler == "optuna:TPESampler" and sum(found.counts.values()) == 12


def test_a_sweep_by_time_goes_on_as_one_by_energy(tmp_path: Path) -> None:
    first = sweep(tmp_path, trials=6)
    again = sweep(tmp_path, trials=6, objectives=("energy",), metrics=PRODUCT)
    assert first.path == again.path and again.best is not None and again.best.joules
    outcome = SweepFolder(again.path).outcome()
    assert outcome is not None and outcome.objectives == ("energy",) and outcome.winner.metrics["edp"] > 0
    third = sweep(tmp_path, trials=6, objectives=("energy",), metrics={"mj": "1000 * energy"})
    assert not third.finalists, "nothing is measured anew for a metric"
    assert autotune.load(tmp_path)["metric.mj"].notna().any(), "recorded trials get it"


@pytest.mark.parametrize(
    ("objectives", "metrics", "said"),
    [
        (("speed",), {}, "there is no objective 'speed'; there are time, energy, and --metric"),
        (("time", "max:time"), {}, "give one, or two different ones"),
        (("time",), {"time": "1"}, "the metric name 'time' is taken"),
        (("time",), {"x": "__import__('os')"}, "there is no '__import__'"),
        (("time",), {"x": "time.real"}, "not time.real"),
        (("time",), {"x": "tme"}, "there is no 'tme'; there are n_time"),
    ],
)
def test_what_is_no_objective_is_refused(
    objectives: tuple[str, ...], metrics: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as told:
        sweep(tmp_path, objectives=objectives, metrics=metrics)
    assert said in str(told.value)
    assert not list(tmp_path.iterdir())


def test_a_device_without_a_meter_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        sizes = {"n_chan": 64}
        autotune.sweep(EXAMPLE, problem=sizes, device="host", results=tmp_path, trials=1, objectives=("energy",))
    assert "does not report its energy" in str(told.value)


def test_the_command_line_reads_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["sweep", "--kernel", EXAMPLE, "--device", "simulated:0", "--trials", "4", "--results", str(tmp_path)]
    typed([*words, "--metric", "us=1e6*time", "--objective", "us"], monkeypatch)
    assert "figures      us " in capsys.readouterr().out
    code, told = ended([*words, "--metric", "us"], capsys, monkeypatch)
    assert code == 2 and "is not NAME=EXPRESSION" in told


def test_ranks_of_objectives() -> None:
    assert Objective.read("max:x") == Objective("x", largest=True) and str(Objective.read("max:x")) == "max:x"
    assert Objective.read("min:x") == Objective("x") and Objectives().is_time and not Objectives().needs_energy
