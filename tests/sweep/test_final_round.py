"""Verdicts between finalists: intervals decide, and ties are broken by a stated preference."""

from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune import Config
from autotune.records.measurement import Measurement, Protocol
from autotune.records.trial import Trial
from autotune.sweep.final_round import Contestant, rank, relation_of
from autotune.trial.worker import Job, Worker

from ..conftest import EXAMPLE

pytestmark = pytest.mark.quick


def measured(centre: float, spread: float, n: int = 41, seed: int = 0) -> Measurement:
    samples = centre * (1 + spread * np.random.default_rng(seed).normal(size=n))
    q1, median, q3 = np.quantile(samples, (0.25, 0.5, 0.75))
    return Measurement(tuple(samples), float(median), float(q1), float(q3), 1e9, True, 0, False, 0.0, 0.0)


def trial(number: int, registers: int, shared: int = 0, **config: int) -> Trial:
    return Trial(
        number=number,
        status="measured",
        config=Config(config),
        key="k",
        registers=registers,
        shared_bytes=shared,
    )


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (measured(100, 0.001), measured(110, 0.001, seed=1), "faster"),
        (measured(110, 0.001), measured(100, 0.001, seed=1), "slower"),
        (measured(100, 0.001), measured(100.1, 0.001, seed=1), "same"),
        (measured(100, 0.1), measured(103, 0.1, seed=1), "ambiguous"),
    ],
)
def test_compare(a: Measurement, b: Measurement, verdict: str) -> None:
    assert relation_of(a, b) == verdict


def test_the_interval_of_the_median_covers_it_about_19_times_in_20() -> None:
    covered = 0
    for seed in range(400):
        low, high = measured(1.0, 0.1, seed=seed).interval()
        covered += low <= 1.0 <= high
    assert 370 <= covered <= 398  # 95 % is 380


def test_a_clear_winner_wins_whatever_it_costs() -> None:
    fast, slow = trial(0, registers=200, WGS=64), trial(1, registers=20, WGS=128)
    finalists = rank([Contestant(slow, measured(120, 0.001)), Contestant(fast, measured(100, 0.001))], {"WGS": 128})
    assert [f.number for f in finalists] == [0, 1]
    assert [f.relation for f in finalists] == ["fastest", "slower"]


def test_ties_are_broken_by_registers_then_shared_memory_then_nearness_to_the_default() -> None:
    times = [measured(100 * (1 + 0.0005 * i), 0.0001, seed=i) for i in range(4)]
    a, b = trial(0, 64, 1000, WGS=64), trial(1, 40, 2000, WGS=64)
    c, d = trial(2, 40, 1000, WGS=64), trial(3, 40, 1000, WGS=128)
    finalists = rank(list(map(Contestant, (a, b, c, d), times)), {"WGS": 128})
    assert finalists[0].number == d.number
    assert finalists[0].relation == "same" and finalists[1].relation == "fastest"


def test_what_is_the_same_but_no_tie_wins_on_time() -> None:
    fast, small = trial(0, registers=200), trial(1, registers=20)
    finalists = rank([Contestant(small, measured(100.4, 0.0001)), Contestant(fast, measured(100, 0.0001))], {})
    assert [(f.number, f.relation) for f in finalists] == [(0, "fastest"), (1, "same")]


def test_a_cache_that_is_deleted_in_it_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure, deleted = Worker.measure_together, list[Path]()

    def deletes_once(
        self: Worker, jobs: list[Job], protocol: Protocol, deadline_s: float, n_placements: int = 1
    ) -> list[Measurement]:
        if not deleted:
            for path in {path for job in jobs for path in job.binary.files.values()}:
                path.unlink()
                deleted.append(path)
        return measure(self, jobs, protocol, deadline_s, n_placements)

    monkeypatch.setattr(Worker, "measure_together", deletes_once)
    found = autotune.sweep(EXAMPLE, device="simulated:4", results=tmp_path, trials=12)
    assert deleted and all(path.exists() for path in deleted)
    assert found.finalists and found.best is not None
