"""Today's checks of recorded configs: who passes has them recorded, and who does not is no longer measured."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from autotune.analysis.show import checks_text
from autotune.cli.commands.verify import verify
from autotune.core.errors import Status, TrialFailure, UsageError
from autotune.devices import find_device
from autotune.records.checks_made import CHECKS, lacking
from autotune.records.folder import SweepFolder
from autotune.records.trial import Trial
from autotune.records.trial_log import append
from autotune.source.registry import load_kernel
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench
from autotune.trial.worker import Worker
from autotune.validity.recheck import recheck

from ..conftest import EXAMPLE

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 64, "n_chan": 100})


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench(find_device("simulated:5")) as bench:
        yield bench


@pytest.fixture
def old(bench: Bench, tmp_path: Path) -> SweepFolder:
    """A sweep whose trials say nothing about their checks, as an older version recorded them."""
    path = run_sweep(KERNEL, PROBLEM, bench, Settings(results=tmp_path, trials=5, sampler="random")).path
    for trial in SweepFolder(path).trials():
        append(path, replace(trial, checks=(), rule=0))
    return SweepFolder(path)


def by_number(folder: SweepFolder) -> dict[int, Trial]:
    return {trial.number: trial for trial in SweepFolder(folder.path).trials()}


def test_checks_that_pass_are_recorded_and_all_else_stays(old: SweepFolder, bench: Bench) -> None:
    before, outcome = by_number(old), old.outcome()
    assert outcome is not None and all(not trial.checks for trial in before.values())
    found = list(recheck(old, KERNEL, bench, 60.0, everything=True))
    assert found and not [each.failure for each in found if each.failure]
    now, after = by_number(old), SweepFolder(old.path).outcome()
    assert after is not None and after.winner.config == outcome.winner.config
    assert set(now[after.winner.number].checks) == set(CHECKS)
    for number, trial in now.items():
        if trial.status == Status.MEASURED:
            assert not lacking(trial.checks, 1) and trial.median_s == before[number].median_s


def test_a_device_of_the_same_architecture_makes_them_and_is_named(old: SweepFolder, bench: Bench) -> None:
    target = replace(find_device("simulated:6"), device=replace(bench.target.device, name="another of this kind"))
    with Bench(target) as elsewhere:
        found = list(recheck(old, KERNEL, elsewhere, 60.0))
    assert found and not [each.failure for each in found if each.failure]
    trial = by_number(old)[found[0].trial.number]
    assert trial.checks and trial.checked_on == target.device.name
    assert checks_text(trial) == f"correct as far as checked: on {trial.checked_on}"


def test_a_config_that_is_wrong_is_no_longer_measured(
    old: SweepFolder, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*args: Any, **kwargs: Any) -> None:
        raise TrialFailure(Status.WRONG, "it writes beside its output")

    monkeypatch.setattr(Worker, "verify", wrong)
    outcome = old.outcome()
    assert outcome is not None
    found = list(recheck(old, KERNEL, bench, 60.0))
    assert found and all(each.is_wrong for each in found)
    trial = by_number(old)[outcome.winner.number]
    assert trial.status == Status.WRONG and trial.median_s is None and "beside its output" in trial.message
    assert SweepFolder(old.path).outcome() is None


def test_other_machine_code_than_the_recorded_one_is_left(old: SweepFolder, bench: Bench) -> None:
    for trial in by_number(old).values():
        append(old.path, replace(trial, code=trial.code and "0123456789abcdef"))
    before = by_number(old)
    found = list(recheck(old, KERNEL, bench, 60.0))
    assert found and all(isinstance(each.failure, UsageError) for each in found)
    assert "is not that of the record" in str(found[0].failure)
    assert by_number(old) == before and SweepFolder(old.path).outcome() is not None


def test_a_sweep_without_memory_is_left_and_the_others_are_verified(
    old: SweepFolder, tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = KERNEL.problem({"n_time": 64, "n_chan": 96})
    path = run_sweep(KERNEL, other, bench, Settings(results=tmp_path, trials=3, sampler="random")).path
    first, measure, released = min(old.path, path), Worker.measure, []

    def short(worker: Worker, job: Any, *rest: Any) -> Any:
        if KERNEL.problem(job.problem) == (PROBLEM if first == old.path else other):
            raise MemoryError("Out of memory allocating 1,509,949,440 bytes")
        return measure(worker, job, *rest)

    monkeypatch.setattr(Worker, "measure", short)
    monkeypatch.setattr(Worker, "release", lambda worker: released.append(worker))
    verify(records=[tmp_path], kernel=str(EXAMPLE), device="simulated:6")
    out, err = capsys.readouterr()
    assert "left " + str(first) in err and "1,509,949,440" in err and len(released) == 1
    assert "1 sweep left" in out and "0 are wrong" in out


def test_ctrl_c_keeps_what_was_verified_and_says_how_much(
    old: SweepFolder, tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = KERNEL.problem({"n_time": 64, "n_chan": 96})
    path = run_sweep(KERNEL, other, bench, Settings(results=tmp_path, trials=3, sampler="random")).path
    last, measure = max(old.path, path), Worker.measure

    def interrupted(worker: Worker, job: Any, *rest: Any) -> Any:
        if KERNEL.problem(job.problem) == (PROBLEM if last == old.path else other):
            raise KeyboardInterrupt
        return measure(worker, job, *rest)

    monkeypatch.setattr(Worker, "measure", interrupted)
    with pytest.raises(typer.Exit) as end:
        verify(kernel=str(EXAMPLE), records=[tmp_path], device="simulated:6")
    out, err = capsys.readouterr()
    assert end.value.exit_code == 130 and "1 of 2 sweeps were verified, and their records say so" in err
    assert "recorded configs passed today's checks, 0 are wrong" in out and "verified     0" not in out
