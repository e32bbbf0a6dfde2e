"""What is right at the timed size: NumPy's reference, or where it would take minutes, a config that has passed."""

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.core.errors import Status
from autotune.devices import find_device
from autotune.records.edge_sizes import verified_on
from autotune.records.folder import SweepFolder
from autotune.records.trial import Trial
from autotune.source.registry import load_kernel
from autotune.sweep.run import run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench
from autotune.trial.context import Context
from autotune.trial.oracle import oracle_of

from ..conftest import EXAMPLE

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 64, "n_chan": 100})


@pytest.fixture
def too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.trial.oracle.too_large_for_numpy", lambda kernel, problem: True)


def answered_by(path: Path) -> dict[int, str]:
    """Who stood in for NumPy, by the number of each measured trial."""
    by_number = {t.number: t for t in SweepFolder(path).trials()}
    return {n: str(by_number[t.stand_in].config) for n, t in by_number.items() if t.stand_in is not None}


def test_the_first_config_that_passes_stands_in(too_large: None, tmp_path: Path) -> None:
    settings = Settings(results=tmp_path, trials=6, sampler="random")
    with Bench(find_device("simulated:5")) as bench:
        sweep = run_sweep(KERNEL, PROBLEM, bench, settings)
        first = answered_by(sweep.path)
        fastest = min((t for t in SweepFolder(sweep.path).trials() if t.median_s), key=lambda t: t.median_s or 0.0)
        run_sweep(KERNEL, PROBLEM, bench, replace(settings, trials=9))
        later = answered_by(sweep.path)
    configs = {t.number: str(t.config) for t in SweepFolder(sweep.path).trials()}
    assert set(first.values()) == {configs[min(first)]}, "the first that was measured, against itself too"
    folder = SweepFolder(sweep.path)
    told = {verified_on(folder.about(), t, folder.trials(), KERNEL)[-1] for t in folder.trials() if t.median_s}
    assert all(text.endswith("; NumPy answers smaller sizes only)") for text in told)  # no part was asked of it here
    assert {who for number, who in later.items() if number not in first} <= {str(fastest.config)}


def test_a_final_round_alone_has_an_oracle_too(too_large: None, tmp_path: Path) -> None:
    settings = Settings(results=tmp_path, trials=6, sampler="random", finalist_samples=9)
    with Bench(find_device("simulated:5")) as bench:
        run_sweep(KERNEL, PROBLEM, bench, settings)
        again = run_sweep(KERNEL, PROBLEM, bench, replace(settings, finalist_samples=12))
    assert again.finalists and not again.interrupted


def test_numpy_answers_where_it_can_and_who_stands_in_adds_its_errors(tmp_path: Path) -> None:
    with Bench(find_device("simulated:5")) as bench:
        context = Context.of(KERNEL, PROBLEM, bench, Settings().protocol, 60.0)
        config = KERNEL.default_config(PROBLEM, bench.target.device)
        recorded = Trial(
            number=3, status=Status.MEASURED, config=config, key="key", median_s=1.0, max_error=0.25, rms_error=0.125
        )
        with oracle_of(context, recorded) as oracle:
            assert oracle.stand_in is None and not oracle.is_open
        with oracle_of(context, recorded, trust_recorded=True) as oracle:
            assert oracle.stand_in is not None and oracle.stand_in.number == 3 and not oracle.numpy_parts
            job = oracle.job(config, oracle.stand_in.binary)
            assert job.oracle == (config, oracle.stand_in.binary) and job.case == oracle.folder
            tried = bench.worker.trial(job, context.protocol, context.deadline_s)
            assert tried.measurement is not None
            told = oracle.against_reference(tried.measurement)
            assert (told.max_error, told.rms_error) == (0.25, 0.125)
        assert not oracle.folder.exists()


def test_inputs_that_were_deleted_are_made_again(tmp_path: Path) -> None:
    with Bench(find_device("simulated:5")) as bench:
        context = Context.of(KERNEL, PROBLEM, bench, Settings().protocol, 60.0)
        config = KERNEL.default_config(PROBLEM, bench.target.device)
        binary = bench.pool.start(context, config).binary()
        with oracle_of(context, None) as oracle:
            oracle.job(config, binary)
            for path in oracle.folder.iterdir():
                path.unlink()
            oracle.folder.rmdir()
            assert not oracle.is_there
            oracle.job(config, binary)
            assert oracle.is_there
        recorded = Trial(number=3, status=Status.MEASURED, config=config, key="key", median_s=1.0)
        with oracle_of(context, recorded, trust_recorded=True) as oracle:
            assert oracle.stand_in is not None
            (path,) = oracle.stand_in.binary.files.values()
            path.unlink()
            oracle.job(config, binary)
            assert path.exists()
