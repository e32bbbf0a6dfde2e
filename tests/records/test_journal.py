"""The journal for optuna-dashboard: what the record says, never twice, and a file that is another is told."""

import shutil
import threading
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna import visualization
from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

import autotune
from autotune import Config, TrialFailure, UsageError
from autotune.core.errors import Status
from autotune.records import journal as journals
from autotune.records.folder import SweepFolder
from autotune.records.journal import Journal
from autotune.records.record import SweepRecord
from autotune.records.trial_log import append

from .. import recorded
from ..conftest import EXAMPLE
from ..recorded import DEFAULT, H200, TALL, WIDE

SPACE = [Config(BLOCK_C=c, BLOCK_T=t, UNROLL=u) for c in (32, 64) for t in (1, 4, 16) for u in (1, 2, 4, 8)]


def fail(note: str) -> None:
    raise AssertionError(note)


def stored(path: Path) -> optuna.Study:
    return optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(str(path))))


def told(study: optuna.Study) -> list[tuple[Any, ...]]:
    return [(t.params, t.state, t.values, t.user_attrs, t.datetime_complete) for t in study.trials]


def swept(tmp_path: Path, *, trials: int, dashboard: Path) -> Path:
    short: dict[str, Any] = {"finalists": 1, "finalist_samples": 3, "checked_launches": 0}
    return autotune.sweep(
        EXAMPLE, device="simulated", results=tmp_path / "results", trials=trials, dashboard=dashboard, **short
    ).path


@pytest.mark.quick
def test_a_sweep_writes_its_study_and_goes_on_in_the_same_file(tmp_path: Path) -> None:
    dashboard = tmp_path / "new" / "sweeps.journal"
    path = swept(tmp_path, trials=6, dashboard=dashboard)
    first = told(stored(dashboard))
    assert len(first) == 6
    swept(tmp_path, trials=9, dashboard=dashboard)
    study, record = stored(dashboard), autotune.study(path)
    in_final_round = {t.number for t in record.trials if "final_median_s" in t.user_attrs}
    assert told(study)[:6] == first and len(study.trials) == 9
    assert [t for t in told(study) if t[3]["number"] not in in_final_round] == [
        t for t in told(record) if t[3]["number"] not in in_final_round
    ]
    assert study.user_attrs == {**record.user_attrs, "path": str(path.resolve())}
    failed = [t for t in study.trials if t.state == TrialState.FAIL]
    assert all(t.user_attrs["status"] in ("resources", "compile_failed") and t.user_attrs["message"] for t in failed)
    assert "dashboard" not in SweepFolder(path).about().settings


def test_a_trial_that_is_refuted_or_stale_makes_the_study_anew(tmp_path: Path) -> None:
    path = recorded.record(tmp_path, H200, {DEFAULT: 9.0, WIDE: 8.0, TALL: 7.0}, verdict=False)
    dashboard, folder = tmp_path / "x", SweepFolder(path)
    Journal(dashboard, fail).match(SweepRecord.of(folder))
    append(path, folder.trials()[2].refuted(TrialFailure(Status.WRONG, "power[3] is 2")))
    journal = Journal(dashboard, fail)
    journal.match(SweepRecord.of(folder))
    assert told(stored(dashboard)) == told(autotune.study(path)) and stored(dashboard).best_params == WIDE
    recorded.rewrite_about(path, stale=[1])
    journal.match(SweepRecord.of(SweepFolder(path)))
    assert [t.params for t in stored(dashboard).trials] == [DEFAULT, TALL]


def test_a_study_has_the_objectives_of_its_sweep(tmp_path: Path) -> None:
    path = recorded.record(tmp_path, H200, {DEFAULT: 9.0, WIDE: 8.0}, verdict=False, joules=2.0)
    for objectives, values in ((["time"], [9e-6]), (["time", "max:energy"], [9e-6, 2.0])):
        recorded.rewrite_about(path, settings={"objectives": objectives})
        Journal(tmp_path / "x", fail).match(SweepRecord.of(SweepFolder(path)))
        study = stored(tmp_path / "x")
        assert told(study) == told(autotune.study(path)) and study.trials[0].values == pytest.approx(values)
        assert study.directions == autotune.study(path).directions and study.user_attrs["objectives"] == objectives
        assert [Config(trial.params) for trial in study.best_trials] == [WIDE]


def test_a_file_has_a_study_for_each_problem_and_none_of_another_record(tmp_path: Path) -> None:
    results, dashboard = tmp_path / "results", tmp_path / "x"
    for n_time in (100, 200):
        path = recorded.record(results, H200, {DEFAULT: 9.0}, n_time=n_time)
        Journal(dashboard, fail).match(SweepRecord.of(SweepFolder(path)))
    storage = JournalStorage(JournalFileBackend(str(dashboard)))
    assert len(optuna.get_all_study_names(storage)) == 2
    shutil.copytree(path.parent, tmp_path / "kernel")  # with what its sweeps share
    path = tmp_path / "kernel" / path.name
    with pytest.raises(UsageError, match=r"its study 'detect n_time=200.* is of .*results.*; name another file"):
        Journal(dashboard, fail).match(SweepRecord.of(SweepFolder(path)))


@pytest.mark.parametrize(
    "contents",
    [b"SQLite format 3\0\1\2", b'{"op_code": 0', b'{"kernel": "detect"}\n', b"[]\n", b"torn}\n", b"\xff\xfe\n{}\n"],
)
def test_a_file_that_is_another_or_damaged_is_told_and_left(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(contents)
    with pytest.raises(UsageError, match=r"x: it is not a complete Optuna journal \(.*\); name another file") as caught:
        swept(tmp_path, trials=3, dashboard=path)
    assert "\n" not in str(caught.value) and path.read_bytes() == contents
    assert not (tmp_path / "results").exists()


def test_a_folder_is_no_journal_and_a_file_that_breaks_on_the_way_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Is a directory"):
        Journal(tmp_path, fail)
    path = recorded.record(tmp_path / "results", H200, {DEFAULT: 9.0, WIDE: 8.0})
    notes: list[str] = []
    journal = Journal(tmp_path / "x", notes.append)
    journal.match(SweepRecord.of(SweepFolder(path)))
    (tmp_path / "x").unlink()
    (tmp_path / "x").mkdir()
    for trial in SweepFolder(path).trials():
        journal.add(trial)
    assert len(notes) == 1 and "x is no longer written: Is a directory" in notes[0]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("lock", ["nothing", "another", "folder", "itself", "relative"])
def test_a_lock_that_nobody_gives_back_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    monkeypatch.setattr(journals, "LEFT_S", 0.05)
    folder = SweepFolder(recorded.record(tmp_path / "results", H200, {DEFAULT: 9.0, WIDE: 8.0}))
    dashboard, held = tmp_path / "x", tmp_path / "x.lock"
    (tmp_path / "another").write_text("")
    if lock == "folder":
        held.mkdir()
    else:
        targets = {"nothing": "/nowhere", "another": tmp_path / "another", "itself": dashboard, "relative": "dash/x"}
        held.symlink_to(targets[lock])
    notes: list[str] = []
    ends = threading.Thread(target=lambda: Journal(dashboard, notes.append).match(SweepRecord.of(folder)), daemon=True)
    ends.start()
    ends.join(60)
    assert not ends.is_alive()
    if lock in ("itself", "relative"):  # of a process that was killed
        assert notes == [] and len(stored(dashboard).trials) == 2 and not held.is_symlink()
    else:
        (note,) = notes
        assert f"its lock, {held}, is" in note and "remove it; the record goes on" in note


def test_importances_and_pictures_are_of_the_record_and_of_the_journal(tmp_path: Path) -> None:
    times = {c: 1000 / c.UNROLL + 30 * c.BLOCK_T**0.5 + (c.BLOCK_C == 64) * 1e-3 for c in SPACE}
    path = recorded.record(tmp_path, H200, times)
    Journal(tmp_path / "x", fail).match(SweepRecord.of(SweepFolder(path)))
    for study in (autotune.study(path), stored(tmp_path / "x")):
        for evaluator in (PedAnovaImportanceEvaluator(), FanovaImportanceEvaluator(n_trees=8, seed=0)):
            shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
            assert next(iter(shares)) == "UNROLL" and set(shares) == {"BLOCK_C", "BLOCK_T", "UNROLL"}
        history = visualization.plot_optimization_history(study)
        assert min(history.data[0].y) == pytest.approx(1e-6 * min(times.values()))
        assert len(visualization.plot_slice(study).data) == 3
        assert "UNROLL" in visualization.plot_param_importances(study).data[0].y
