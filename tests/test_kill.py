"""A sweep that is killed, and two that want one device: nothing measured twice, nothing lost, nobody left behind."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from autotune.records.folder import SweepFolder, find_sweeps

from .conftest import EXAMPLE
from .family import descendants, gone
from .forked import Command
from .killing import Tally, check, disturb, n_trials, sweep_job
from .waiting import wait_until

SWEEP = ["sweep", "--kernel", EXAMPLE, "--device", "host", "--trials", "100"]
N_CONFIGS = 26


def start(results: Path, *more: str) -> Command:
    return Command(*SWEEP, "--results", results, *more)


def test_killed_three_times_it_finishes_with_the_very_set_of_an_undisturbed_sweep(tmp_path: Path) -> None:
    rng = random.Random(os.getpid())
    results = tmp_path / "killed"
    for _ in range(3):
        n_before = n_trials(results)
        sweep = start(results)
        while n_trials(results) <= n_before and sweep.poll() is None:  # some way into the search
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 1.0))
        family = descendants(sweep.pid)
        sweep.kill()
        sweep.communicate()
        wait_until(lambda family=family: all(map(gone, family)), lambda: "a child process outlived the sweep")  # type: ignore[misc]
    (killed,) = find_sweeps(results)
    n_before = len(killed.trials())
    sweep = start(results)
    _, progress = sweep.communicate(timeout=120)
    assert sweep.returncode == 0, progress
    assert f"{n_before} trials already recorded" in progress
    undisturbed = start(tmp_path / "undisturbed")
    assert undisturbed.wait(timeout=120) == 0
    (whole,) = find_sweeps(tmp_path / "undisturbed")
    configs = [t.config for t in killed.trials()]
    assert len(configs) == len(set(configs)) == N_CONFIGS
    assert set(configs) == {t.config for t in whole.trials()}
    assert [t.number for t in killed.trials()] == list(range(N_CONFIGS))
    assert killed.outcome() is not None


def test_a_finished_sweep_measures_nothing_when_started_again(tmp_path: Path) -> None:
    for _ in range(2):
        sweep = start(tmp_path, "--only", "BLOCK_C=32", "--only", "UNROLL=1")
        out, progress = sweep.communicate(timeout=120)
        assert sweep.returncode == 0 and "speed-up" in out, progress
    assert "trial " not in progress and "measuring" not in progress


def test_interrupted_it_ends_cleanly_with_what_is_known(tmp_path: Path) -> None:
    sweep = start(tmp_path)
    while not n_trials(tmp_path) and sweep.poll() is None:
        time.sleep(0.02)
    sweep.send_signal(signal.SIGINT)
    out, progress = sweep.communicate(timeout=60)
    assert sweep.returncode == 130, progress
    assert "Traceback" not in progress and "run the same command again to resume" in out
    (folder,) = find_sweeps(tmp_path)
    assert folder.trials()


def test_the_second_sweep_on_a_device_waits_and_says_who_holds_it(tmp_path: Path) -> None:
    first = start(tmp_path / "first")
    while not n_trials(tmp_path / "first") and first.poll() is None:
        time.sleep(0.02)
    second = start(tmp_path / "second", "--only", "BLOCK_C=32", "--only", "UNROLL=1")
    first.send_signal(signal.SIGSTOP)
    lines = [second.stderr.readline() for _ in range(1)]
    assert f"waiting: the device is in use by process {first.pid} (" in lines[0], lines
    assert not (tmp_path / "second").exists()
    first.send_signal(signal.SIGCONT)
    assert first.wait(timeout=120) == 0
    assert second.wait(timeout=120) == 0
    assert [SweepFolder(f.path).outcome() is not None for f in find_sweeps(tmp_path)] == [True, True]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("device", ["host", "simulated"])
def test_processes_that_are_killed_are_replaced(device: str, tmp_path: Path) -> None:
    disturb(sweep_job(device), tmp_path, random.Random(device), Tally(), most=2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("device", ["host", "simulated"])
def test_a_cache_that_is_deleted_in_the_middle_of_a_sweep_is_made_anew(device: str, tmp_path: Path) -> None:
    job = sweep_job(device)
    process = job.start(tmp_path)
    n_deleted = 0
    while process.poll() is None:
        if n_trials(tmp_path) >= 2 + 3 * n_deleted and n_deleted < 3:
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)
            n_deleted += 1
        time.sleep(0.01)
    _, told = process.communicate()
    assert process.returncode == 0 and "Traceback" not in told and n_deleted == 3, told
    check(job, tmp_path)
