"""How a sweep begins: the default is its first trial however long it compiles, and then what is known is tried."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune import Config
from autotune.core.errors import Status, TrialFailure
from autotune.core.problem import named_fields
from autotune.devices import find_device
from autotune.records.folder import SweepFolder
from autotune.records.trial import Trial
from autotune.runtime.tune_once import Attempt, Surroundings, TunedHere, keep_outcome
from autotune.source.registry import load_kernel
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench
from autotune.trial.compile import Pending, Proposal

from ..conftest import EXAMPLE
from ..recorded import DEFAULT, TALL, WIDE, record, rewrite_about

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 64, "n_chan": 100})
TARGET = find_device("simulated:3")
OTHER = replace(TARGET.device, name="simulated too", n_multiprocessors=100)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with Bench(TARGET, compile_processes=1) as bench:
        yield bench


def trials(bench: Bench, results: Path, **settings: Any) -> list[Trial]:
    given = {"trials": 8, "sampler": "random", "finalist_samples": 3, "checked_launches": 0, **settings}
    return SweepFolder(run_sweep(KERNEL, PROBLEM, bench, Settings(results=results, **given)).path).trials()


def late(proposal: Proposal, bench: Bench, failure: TrialFailure | None) -> Proposal:
    """The proposal, whose compile ends only when the device has been open for a while, and others are compiled."""
    assert isinstance(proposal.outcome, Pending)
    future, own = Future[Any](), proposal.outcome.future

    def end() -> None:
        while not bench.is_open:
            time.sleep(0.01)
        time.sleep(0.5)
        if failure:
            future.set_exception(failure)
        else:
            future.set_result(own.result())

    threading.Thread(target=end, daemon=True).start()
    return replace(proposal, outcome=replace(proposal.outcome, future=future))


@pytest.mark.quick
@pytest.mark.parametrize("failure", [None, TrialFailure(Status.COMPILE_FAILED, "no")])
def test_the_default_is_the_first_trial_even_when_its_compile_is_the_slowest(
    failure: TrialFailure | None, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, default = bench.pool.start, KERNEL.default_config(PROBLEM, TARGET.device)

    def delayed(context: Any, config: Config) -> Proposal:
        proposal = start(context, config)
        return late(proposal, bench, failure) if config == default else proposal

    monkeypatch.setattr(bench.pool, "start", delayed)
    found = trials(bench, tmp_path)
    assert found[0].config == default and found[0].number == 0 and len(found) == 8
    assert found[0].status == ("compile_failed" if failure else "measured")


def test_a_record_of_the_problem_on_another_device_is_tried_next_whatever_the_budget(
    bench: Bench, tmp_path: Path
) -> None:
    record(tmp_path, OTHER, {WIDE: 1.0, DEFAULT: 2.0}, n_time=64, n_chan=100)
    record(tmp_path, TARGET.device, {TALL: 1.0, DEFAULT: 2.0}, n_time=64, n_chan=101)
    assert [t.config for t in trials(bench, tmp_path, trials=2)] == [DEFAULT, WIDE]
    assert [t.config for t in trials(bench, tmp_path, trials=3)][:2] == [DEFAULT, WIDE], "the sweep goes on"
    assert TALL in [t.config for t in trials(bench, tmp_path, trials=6)], "the winner of the nearest problem"


def test_a_sweep_that_had_ended_tries_what_has_won_on_another_device_since(bench: Bench, tmp_path: Path) -> None:
    first = [t.config for t in trials(bench, tmp_path, trials=2)]
    assert WIDE not in first
    record(tmp_path, OTHER, {WIDE: 1.0, DEFAULT: 2.0}, n_time=64, n_chan=100)
    assert [t.config for t in trials(bench, tmp_path, trials=2, hints=0)] == first
    assert [t.config for t in trials(bench, tmp_path, trials=2)] == [*first, WIDE]
    assert [t.config for t in trials(bench, tmp_path, trials=2)] == [*first, WIDE], "there is nothing left to try"


def test_a_sweep_that_had_ended_tries_a_default_that_has_changed_since(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [t.config for t in trials(bench, tmp_path, trials=2, hints=0)]
    assert WIDE not in first
    monkeypatch.setattr(type(KERNEL), "default", dict(WIDE))
    for _ in range(2):
        assert [t.config for t in trials(bench, tmp_path, trials=2, hints=0)] == [*first, WIDE]


def test_a_sweep_whose_space_has_grown_since_makes_as_many_trials_as_a_new_one(bench: Bench, tmp_path: Path) -> None:
    small = {"BLOCK_T": (1, 2, 4, 8)}
    first = trials(bench, tmp_path, trials=6, hints=0, only=small)
    (path,) = (file.parent for file in tmp_path.rglob("sweep.json"))
    space = {name: list(small.get(name, parameter.values)) for name, parameter in KERNEL.space.parameters.items()}
    rewrite_about(path, space=space, settings={})
    grown = trials(bench, tmp_path, trials=6, hints=0)
    assert grown[:6] == first and len(grown) == 12 and any(t.config.BLOCK_T == 16 for t in grown)
    assert len(trials(bench, tmp_path, trials=6, hints=0)) == 12, "the space has not grown again"
    assert len(trials(bench, tmp_path, trials=7, hints=0)) == 13, "those before do not count"


def test_the_fastest_config_of_a_first_use_is_tried_next(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    attempts = tuple(Attempt(c, "predicted", "0" * 12, "measured", median_s=s) for c, s in ((TALL, 2.0), (WIDE, 1.0)))
    around = Surroundings(TARGET.device, "", "formula", "")
    found = TunedHere("detect", named_fields(PROBLEM), around, "2026-11-27T07:00:00+00:00", 1.0, attempts, winner=1)
    assert keep_outcome(found) is None
    record(tmp_path / "results", OTHER, {TALL: 1.0, DEFAULT: 2.0}, n_time=64, n_chan=100)
    assert [t.config for t in trials(bench, tmp_path / "results", trials=3)] == [DEFAULT, WIDE, TALL]
    cold = [t.config for t in trials(bench, tmp_path / "cold", trials=2, hints=0)]
    assert WIDE not in cold


def test_no_hints_start_cold(bench: Bench, tmp_path: Path) -> None:
    cold = [t.config for t in trials(bench, tmp_path / "cold", hints=0)]
    record(tmp_path / "known", OTHER, {WIDE: 1.0, DEFAULT: 2.0}, n_time=64, n_chan=100)
    assert [t.config for t in trials(bench, tmp_path / "known", hints=0)] == cold and cold[0] == DEFAULT
    assert WIDE not in cold, "the test is worth something only if chance does not choose it"
    warm = [t.config for t in trials(bench, tmp_path / "known", trials=9)]
    assert warm[8] == WIDE
