"""Configs with one machine code and one launch are one config: measured once, and told."""

from pathlib import Path

import numpy as np
import pytest

from autotune.analysis.same_code import same_code_text, unfelt_parameters
from autotune.core.config import Config
from autotune.core.errors import Status
from autotune.kernel_tuner import tune_kernel
from autotune.records.folder import SweepFolder
from autotune.records.trial import Trial
from autotune.sweep.final_round import contestants_of
from autotune.trial import stations

from ..commands import autotune

SOURCE = """
#ifndef THREADS
#define THREADS 256
#endif
__global__ void scale(float* y, const float* x, int n) {
    const int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i] * ONE;
}
"""
N = 1000


def test_a_parameter_that_changes_nothing_is_named_and_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, run = [], stations.run_stations
    monkeypatch.setattr(stations, "run_stations", lambda *given: (ran.append(given[2]), run(*given))[1])
    x = np.arange(N, dtype=np.float32)
    space = {"block_size_x": [64, 128], "THREADS": [64, 128, 512], "ONE": [1, 2]}
    arguments = [np.zeros(N, np.float32), x, np.int32(N)]
    results, _ = tune_kernel("scale", SOURCE, N, arguments, space, device="host", results=tmp_path)
    assert len(results) == 12 and all(result["time"] > 0 for result in results)
    trials = results.sweep.trials
    same = trials[trials["same_as"].notna()]
    assert len(same) == 8 and same["measure_s"].isna().all()
    measured = trials[trials["same_as"].isna()]
    assert len(measured) == len(ran) == 4 and measured["measure_s"].notna().all()
    by_number = trials.set_index("number")
    for _, row in same.iterrows():
        first = by_number.loc[row["same_as"]]
        assert (row["median_s"], row["code"], row["ONE"]) == (first["median_s"], first["code"], first["ONE"])
    finalists = SweepFolder(results.sweep.path).outcome().finalists
    assert len({(each.config["block_size_x"], each.config["ONE"]) for each in finalists}) == len(finalists)
    told = autotune("show", str(results.sweep.path)).stdout
    same_text = "8 configs have the machine code and the launch of another, and its time: THREADS changes neither"
    assert same_text in " ".join(told.split())


def trial(number: int, same_as: int | None = None, **config: int) -> Trial:
    return Trial(
        number=number, status=Status.MEASURED, config=Config(config), median_s=1e-3 + 1e-9 * number, same_as=same_as
    )


def test_only_a_parameter_that_never_changes_the_code_is_unfelt() -> None:
    trials = [trial(0, A=1, B=1), trial(1, 0, A=2, B=1), trial(2, A=1, B=2), trial(3, 2, A=2, B=2)]
    assert unfelt_parameters(trials) == ["A"]
    assert unfelt_parameters([*trials, trial(4, A=3, B=1)]) == []
    assert same_code_text([trial(0, A=1)]) == ""


def test_the_default_stands_for_its_likes_in_the_final_round() -> None:
    trials = [trial(0, A=1, B=1), trial(1, 0, A=2, B=1), trial(2, A=1, B=2)]
    numbers = lambda default: {t.number for t in contestants_of(trials, Config(default), 5)}  # noqa: E731
    assert numbers({"A": 2, "B": 1}) == {1, 2}
    assert numbers({"A": 1, "B": 1}) == {0, 2}
    assert numbers({"A": 9, "B": 9}) == {0, 2}
