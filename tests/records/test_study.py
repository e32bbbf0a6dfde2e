"""A record as a study of Optuna's: every trial with its outcome, the best one, and what its importances are worth."""

from dataclasses import replace
from datetime import datetime
from itertools import product
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

import autotune
from autotune import Config, UsageError
from autotune.core.errors import Status
from autotune.records.folder import SweepFolder
from autotune.records.trial_log import append

from .. import recorded
from ..recorded import DEFAULT, H200, WIDE

AT = "2026-11-01T10:20:30+00:00"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """UNROLL decides nearly all, BLOCK_T little, BLOCK_C nothing; then a failure without UNROLL, 2 seconds long."""
    space = product((32, 64, 128), (1, 4, 16), (1, 2, 4, 8))
    medians_us = {
        Config(BLOCK_C=c, BLOCK_T=t, UNROLL=u): 1000 / u + 30 * t**0.5 + (c == 64) * 1e-3 for c, t, u in space
    }
    path = recorded.record(tmp_path_factory.mktemp("results"), H200, medians_us, verdict=False, at=AT, efficiency=0.5)
    last = SweepFolder(path).trials()[-1].refuted(autotune.TrialFailure(Status.WRONG, "power[613] is 510.2"))
    append(path, replace(last, number=len(medians_us), config=Config(BLOCK_C=256, BLOCK_T=1), verify_s=2.0, at=""))
    return path


def test_each_trial_has_its_parameters_value_and_attributes(path: Path) -> None:
    found = autotune.study(path)
    trials, record = found.trials, SweepFolder(path).trials()
    assert [t.params for t in trials] == [dict(t.config) for t in record]
    assert [t.values for t in trials[:-1]] == [[t.median_s] for t in record[:-1]]
    assert trials[0].distributions["BLOCK_C"] == optuna.distributions.CategoricalDistribution((32, 64, 128, 256))
    assert trials[0].user_attrs.items() >= {"status": "measured", "registers": 32, "efficiency": 0.5}.items()
    assert trials[0].user_attrs["verified_on"] == ["n_chan=1", "n_chan=129"]
    assert trials[0].datetime_start == datetime.fromisoformat(AT).astimezone().replace(tzinfo=None)
    assert found.user_attrs["problem"] == {"n_time": 100, "n_chan": 4096} and found.user_attrs["default"] == DEFAULT


def test_a_failure_is_a_failed_trial_with_its_status(path: Path) -> None:
    *measured, failed = autotune.study(path).trials
    assert {trial.state for trial in measured} == {TrialState.COMPLETE}
    assert failed.state == TrialState.FAIL and failed.value is None and "UNROLL" not in failed.params
    assert failed.user_attrs["status"] == "wrong" and failed.user_attrs["message"] == "power[613] is 510.2"
    assert failed.duration is not None and failed.duration.total_seconds() == 2.0


def test_the_best_trial_is_the_record_s_best_and_importances_are_in_order(path: Path) -> None:
    found = autotune.study(str(path.parent))
    assert found.best_trial.params == found.user_attrs["winner"] == {"BLOCK_C": 32, "BLOCK_T": 1, "UNROLL": 8}
    assert list(optuna.importance.get_param_importances(found))[:2] == ["UNROLL", "BLOCK_T"]


def test_a_winner_of_the_final_round_is_told_beside_the_best(tmp_path: Path) -> None:
    path = recorded.record(tmp_path, H200, {DEFAULT: 10.0, WIDE: 10.1})
    rows = [
        {"config": dict(c), "median_s": s, "number": n} for n, (c, s) in enumerate({DEFAULT: 11e-6, WIDE: 9e-6}.items())
    ]
    recorded.write_verdict(path, {"winner": rows[1], "default": rows[0], "finalists": rows[::-1]})
    found = autotune.study(path)
    assert found.best_trial.params == DEFAULT and found.user_attrs["winner"] == WIDE
    assert [trial.user_attrs["final_median_s"] for trial in found.trials] == [11e-6, 9e-6]


def test_a_study_is_of_one_sweep(path: Path, tmp_path: Path) -> None:
    several = [recorded.record(tmp_path, H200, {DEFAULT: 9.0}, n_time=n) for n in (100, 200)]
    with pytest.raises(UsageError, match="holds 2 sweeps, but a study shows one") as caught:
        autotune.study(tmp_path)
    assert all(str(one) in str(caught.value) for one in several) and "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="holds no recorded sweep"):
        autotune.study(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="path=3 must be a path"):
        autotune.study(3)  # type: ignore[arg-type]
