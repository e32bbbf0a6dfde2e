"""The record: nothing is lost, a torn line is no trial, a full disk is one clear error, and pandas reads it all."""

import json
import resource
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotune import Config, UsageError
from autotune.core.digest import digest
from autotune.records import folder as folder_module
from autotune.records.folder import SWEEP, SweepFolder, find_sweeps
from autotune.records.paths import sweep_path
from autotune.records.table import load_trials
from autotune.records.trial import Trial
from autotune.records.trial_log import append

from ..recorded import created

pytestmark = pytest.mark.quick

ABOUT = {
    "kernel": "detect",
    "problem": {"n_time": 1024, "n_chan": 200},
    "device": {"name": "host", "kind": "host", "arch": "host"},
    "default": {"WGS": 32},
    "machine": "a machine",
    "commit": "",
}


def trial(number: int, **values: object) -> Trial:
    config = Config(WGS=32 * (number + 1), **({"SG_SIZE": 4} if number % 2 else {}))
    return Trial(number=number, status="measured", config=config, key="k", stamp="s", **values)  # type: ignore[arg-type]


def folder_in(path: Path) -> SweepFolder:
    return created(sweep_path(path, "NVIDIA H200", "detect", "n_time=1024,n_chan=200"), ABOUT)


def test_trials_come_back_as_they_went(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    trials = [
        trial(0, samples_s=(1e-3, 2e-3), n_samples=2, median_s=1.5e-3, verified_on=("n_chan=1",)),
        trial(1, message='a "quote"\n'),
    ]
    for one in trials:
        append(folder.path, one)
    assert SweepFolder(folder.path).trials() == trials
    assert folder.path == tmp_path / "NVIDIA_H200" / "detect" / "n_time=1024,n_chan=200"


def test_sweep_json_is_read_once_and_again_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(folder_in(tmp_path).path, trial(0, median_s=1e-6))
    (folder,), read, paths = find_sweeps(tmp_path), folder_module.read_json, list[Path]()
    monkeypatch.setattr(folder_module, "read_json", lambda path, check: paths.append(path) or read(path, check))
    for _ in range(2):
        assert len(folder.trials()) == folder.columns().n == len(folder.current()) == 1 and folder.outcome() is None
    assert not paths, "find_sweeps has read it"
    (folder.path / SWEEP).write_text((folder.path / SWEEP).read_text() + "\n")
    assert len(folder.trials()) == 1 and [path.name for path in paths].count(SWEEP) == 1


def test_fields_of_a_later_version_are_kept_and_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = folder_in(tmp_path)
    later: dict[str, object] = {"sm_occupancy": 0.5, "stalls": {"barrier": [3, 4]}}
    for number in range(3):
        append(folder.path, trial(number, others=later if number else {}))
    read = SweepFolder(folder.path).trials()
    assert [t.others for t in read] == [{}, later, later] and [t.number for t in read] == [0, 1, 2]
    assert [r.getMessage().partition(" has ")[2] for r in caplog.records] == [
        "fields that only a later autotune knows (sm_occupancy, stalls): they are kept unchanged"
    ]
    copy = folder_in(tmp_path / "copy")
    for one in read:
        append(copy.path, one)
    trials = "trials.jsonl"
    assert (copy.path / trials).read_bytes() == (folder.path / trials).read_bytes()
    assert list(load_trials(tmp_path / "NVIDIA_H200").sm_occupancy[1:]) == [0.5, 0.5]


def test_a_torn_last_line_is_ignored_and_the_next_trial_starts_on_its_own_line(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    append(folder.path, trial(0))
    whole = (folder.path / "trials.jsonl").read_bytes()
    for torn in (whole[:1], whole[: len(whole) // 2], whole[:-1]):
        (folder.path / "trials.jsonl").write_bytes(whole + torn)
        assert [t.number for t in folder.trials()] == [0]
        again = folder_in(tmp_path)
        append(again.path, trial(1))
        assert [t.number for t in again.trials()] == [0, 1]


def test_a_full_disk_is_one_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands in for the disk: the write fails in the middle of the line."""
    folder = folder_in(tmp_path)
    append(folder.path, trial(0))
    before = (folder.path / "trials.jsonl").read_bytes()
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, old[1]))
        with pytest.raises(UsageError, match=r"cannot write .* What was recorded before is safe"):
            append(folder.path, trial(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert (folder.path / "trials.jsonl").read_bytes() == before
    append(folder.path, trial(1))
    assert [t.number for t in folder.trials()] == [0, 1]


def test_load_gives_one_row_a_trial_with_parameters_and_problem_as_columns(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    for i in range(4):
        append(folder.path, trial(i, registers=40 + i if i else None, median_s=1e-3 if i != 2 else None))
    table = load_trials(tmp_path)
    assert len(table) == 4
    assert list(table["WGS"]) == [32, 64, 96, 128] and table["WGS"].dtype == "Int64"
    assert table["SG_SIZE"].isna().tolist() == [True, False, True, False]
    assert set(table["problem.n_chan"]) == {200} and set(table["device"]) == {"host"}
    assert table["registers"].isna().tolist() == [True, False, False, False]
    csv = tmp_path / "trials.csv"
    table.to_csv(csv, index=False)
    again = pd.read_csv(csv)
    assert len(again) == 4 and np.isclose(again["median_s"][0], 1e-3)


def test_numpy_numbers_are_recorded_as_numbers(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    append(folder.path, trial(0, max_error=np.float64(1e-6), registers=np.int64(40)))
    (row,) = [json.loads(line) for line in (folder.path / "trials.jsonl").read_text().splitlines()]
    assert row["max_error"] == 1e-6 and row["registers"] == 40


def test_nothing_recorded_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no recorded sweep .* `autotune sweep` records one"):
        find_sweeps(tmp_path)


def test_stamp_depends_on_every_part_and_on_where_one_ends() -> None:
    assert len({digest("a", "b"), digest("ab", ""), digest("a", "c"), digest("b", "a")}) == 4
