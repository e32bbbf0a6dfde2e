"""Processes that stay between the benches of a script: the same ones, unless something has changed or gone wrong."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.core.errors import TrialFailure, UsageError
from autotune.devices import find_device
from autotune.devices.base import Session
from autotune.trial.bench import Bench
from autotune.trial.crew import end_staying

TARGET = find_device("simulated:3")


@pytest.fixture(autouse=True)
def nobody_stays() -> Iterator[None]:
    end_staying()
    yield
    end_staying()


def process_of(session: Session) -> int:
    return os.getpid()


def pid(bench: Bench) -> int:
    return bench.worker.call(process_of, deadline_s=60.0)


def used(n_processes: int = 1, stays: bool = True) -> int:
    with Bench(TARGET, n_processes, stays=stays) as bench:
        return pid(bench)


def test_the_next_bench_has_the_same_process() -> None:
    first = used(2)
    assert used(2) == used(1) == first


def test_another_bench_has_processes_of_its_own_and_takes_none_along() -> None:
    first = used()
    assert used(stays=False) != first
    assert used() == first


def test_more_processes_another_folder_and_another_environment_start_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {used(1), used(2)}
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path))
    seen.add(used(2))
    monkeypatch.chdir(tmp_path)
    seen.add(used(2))
    assert len(seen) == 4


def test_two_benches_at_once_share_nothing() -> None:
    with Bench(TARGET, 1, stays=True) as one, Bench(find_device("simulated:4"), 1, stays=True) as other:
        both = {pid(one), pid(other)}
    assert len(both) == 2
    used()  # whoever stays


def test_after_an_error_the_processes_end() -> None:
    with pytest.raises(UsageError), Bench(TARGET, 1, stays=True) as bench:
        first = pid(bench)
        raise UsageError("something")
    with pytest.raises(OSError):
        os.kill(first, 0)
    assert used() != first


def test_a_process_that_died_meanwhile_is_replaced() -> None:
    first = used()
    os.kill(first, signal.SIGKILL)
    assert used() != first


def killed(session: Session) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_one_that_dies_within_a_call_costs_that_call() -> None:
    with Bench(TARGET, 1, stays=True) as bench:
        with pytest.raises(TrialFailure, match="killed its process"):
            bench.worker.call(killed, deadline_s=60.0)
        second = pid(bench)
    assert used() == second
