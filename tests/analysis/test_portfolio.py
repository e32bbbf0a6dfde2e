"""The few configurations that serve many problems: the best there are, and honest where something is missing."""

import json
from itertools import combinations
from math import inf
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from autotune.analysis.portfolio import RegretTable, best_subsets, held_out_regret, portfolios, tables
from autotune.cli.commands.portfolio import portfolio as command
from autotune.core.errors import UsageError
from autotune.records.record import read_sweeps

from ..recorded import A100, DEFAULT, H200, TALL, WIDE, record, unsealed

pytestmark = pytest.mark.quick


def made_up(n_problems: int, n_configs: int, seed: int, *, unmeasured: float = 0.0) -> np.ndarray:
    """Regrets float64 [n_problems, n_configs]: each configuration is best at some place among the problems."""
    rng = np.random.default_rng(seed)
    places = rng.random((n_problems, 1, 2)) - rng.random((1, n_configs, 2))
    times = (1 + (places**2).sum(axis=2)) * np.exp(rng.normal(0, 0.01, (n_problems, n_configs)))
    times[rng.random(times.shape) < unmeasured] = inf
    times[:, 0] = np.where(np.isinf(times).all(axis=1), 1.0, times[:, 0])  # a sweep measured something
    return times / times.min(axis=1, keepdims=True) - 1


def score(regret: np.ndarray) -> tuple[int, float, float]:
    """(problems not served, worst of the others, their mean)."""
    finite = np.where(np.isinf(regret), 0.0, regret)
    return int(np.isinf(regret).sum()), float(finite.max()), round(float(finite.mean()), 12)


@pytest.mark.parametrize("unmeasured", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_seldom_far_from_what_trying_every_subset_finds(seed: int, unmeasured: float) -> None:
    regret = made_up(25, 11, seed, unmeasured=unmeasured)
    found = list(best_subsets(regret, 4))
    assert found == list(best_subsets(regret, 4)), "the same answer each time"
    for k, members in enumerate(found, start=1):
        best = min(score(regret[:, c].min(axis=1)) for c in combinations(range(11), k))
        own = score(regret[:, members].min(axis=1))
        assert len(members) == k and own[0] == best[0] and own[1] <= 1.25 * best[1]
    assert score(regret[:, found[0]].min(axis=1)) == min(score(regret[:, [c]].min(axis=1)) for c in range(11))


def test_ties_in_the_worst_are_broken_by_the_mean() -> None:
    regret = np.array([[0.1, 0.1, 0.0], [0.0, 0.1, 0.1], [0.05, 0.05, 0.1]])
    assert next(best_subsets(regret, 1)) == (0,)


def test_no_more_than_what_gains() -> None:
    regret = np.array([[0.0, 0.2, 0.0], [0.1, 0.0, 0.1]])
    assert list(best_subsets(regret, 8)) == [(0,), (0, 1)]
    assert list(best_subsets(np.zeros((1, 3)), 8)) == [(0,)]


# ---------------------------------------------------------------------- from records
@pytest.fixture
def results(tmp_path: Path) -> Path:
    record(tmp_path, H200, {DEFAULT: 30.0, WIDE: 20.0, TALL: 21.0}, n_chan=1024)
    record(tmp_path, H200, {DEFAULT: 30.0, WIDE: 30.0, TALL: 25.0}, n_chan=2048)
    record(tmp_path, H200, {DEFAULT: 10.0, WIDE: 20.0}, n_chan=4096)
    record(tmp_path, A100, {DEFAULT: 30.0, WIDE: 20.0})
    return tmp_path


def table_of(results: Path) -> RegretTable:
    return next(t for t in tables(read_sweeps([results])[0]) if t.sweeps[0].device.name == "NVIDIA H200")


def test_what_was_not_measured_has_infinite_regret(results: Path) -> None:
    table = table_of(results)
    assert set(table.configs) == {DEFAULT, WIDE, TALL}
    column = dict(zip(table.configs, table.regret.T.tolist(), strict=True))
    assert column[TALL] == [pytest.approx(0.05), 0.0, inf]
    assert column[WIDE] == [0.0, pytest.approx(0.2), 1.0]


def test_a_failed_or_later_failing_configuration_serves_nothing(results: Path) -> None:
    path = next(results.rglob("n_time=100,n_chan=2048"))
    line = unsealed((path / "trials.jsonl").read_text().splitlines()[2])
    with open(path / "trials.jsonl", "a") as file:
        file.write(json.dumps({**line, "status": "wrong", "median_s": None}) + "\n")
    table = table_of(results)
    assert np.isinf(table.regret[1, table.configs.index(TALL)])
    assert table.regret[1].min() == 0, "the best of what is left"


def test_portfolios_serve_each_problem_with_its_best_member(results: Path) -> None:
    one, two, three = portfolios(table_of(results), 8)
    assert one.configs == (DEFAULT,), "the one with the least worst regret of those that serve every problem"
    assert one.regret.max() == pytest.approx(0.5)
    assert set(two.configs) == {DEFAULT, TALL}
    assert two.configs[0] == TALL, "the one that serves the most problems comes first"
    assert two.chosen == (0, 0, 1) and two.regret.tolist() == [pytest.approx(0.05), 0.0, 0.0]
    assert three.regret.max() == 0.0


def test_members_that_no_trial_had_are_counted_and_those_that_failed_are_not(results: Path) -> None:
    one, two, three = portfolios(table_of(results), 8)
    assert (one.n_untried, two.n_untried, three.n_untried) == (0, 1, 1), "TALL at n_chan=4096"
    path = next(results.rglob("n_time=100,n_chan=4096"))
    line = unsealed((next(results.rglob("n_time=100,n_chan=2048")) / "trials.jsonl").read_text().splitlines()[2])
    with open(path / "trials.jsonl", "a") as file:
        file.write(json.dumps({**line, "number": 9, "status": "wrong", "median_s": None}) + "\n")
    assert portfolios(table_of(results), 8)[1].n_untried == 0


def test_left_out_problems_have_no_part_in_the_choice(results: Path) -> None:
    # without 1024: {DEFAULT, TALL} -> 5 %; without 2048: {DEFAULT, WIDE} -> 20 %; without 4096: {TALL, WIDE} -> WIDE
    assert held_out_regret(table_of(results).regret, 2)[1].tolist() == [pytest.approx(0.05), pytest.approx(0.2), 1.0]


def test_a_single_problem_has_nothing_to_choose_from_when_it_is_left_out(results: Path) -> None:
    (table,) = (t for t in tables(read_sweeps([results])[0]) if t.sweeps[0].device.name == "NVIDIA A100")
    assert portfolios(table, 3)[0].configs == (WIDE,) and held_out_regret(table.regret, 1).tolist() == [[inf]]
    code, said = run(str(results), "--device", "NVIDIA A100", "--json")
    assert code == 0 and json.loads(said)[0]["portfolios"][0]["left_out"] is None
    assert " - - - " in " ".join(run(str(results), "--device", "NVIDIA A100")[1].split())


def test_many_problems_are_left_out_in_folds() -> None:
    regret = made_up(60, 8, 0)
    for members, left_out in zip(best_subsets(regret, 3), held_out_regret(regret, 3), strict=True):
        assert left_out.max() >= regret[:, members].min(axis=1).max() > 0


def test_where_no_portfolio_serves_all_the_fewest_are_left(results: Path) -> None:
    for n_chan, config in ((64, WIDE), (128, TALL)):
        record(results, H200, {config: 1.0}, n_chan=n_chan)
    one, two, three = portfolios(table_of(results), 8)
    assert one.configs == (WIDE,) and np.isinf(one.regret).sum() == 1 and one.chosen.count(None) == 1
    assert two.regret.max() == 1.0 and three.regret.max() == 0
    left_out = held_out_regret(table_of(results).regret, 1)[0]
    assert np.isinf(left_out).sum() == 3, "128 without itself, and so 64; 4096 then has TALL"


# ---------------------------------------------------------------------- the command
def run(*words: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, UsageError):
        raise done.exception
    return done.exit_code, done.output


def test_command_prints_a_table_for_each_kernel_and_device(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command([results], kernel="", device="", k=None, regret=0.05001, json=False)
    said = capsys.readouterr().out
    assert "detect on NVIDIA H200: 3 problems, 3 configurations" in said and "detect on NVIDIA A100" in said
    assert "2               5.00 %" in said and f"2       {TALL}" in said


def test_command_as_json(results: Path) -> None:
    record(results, H200, {TALL: 1.0}, n_chan=128)
    code, said = run(str(results), "--device", "NVIDIA H200", "--k", "1", "--json")
    (answer,) = json.loads(said)
    assert code == 0
    assert (answer["k"], answer["n_problems"], len(answer["portfolios"])) == (1, 4, 3)
    regret = answer["portfolios"][0]["regret"]
    assert (regret["worst"], regret["mean"], regret["n_unserved"]) == (None, None, 1), "there is no infinity in JSON"
    assert regret["median"] == pytest.approx(0.025)
    assert sum(p["config"] is None and p["regret"] is None for p in answer["problems"]) == 1
    fewest = json.loads(run(str(results), "--device", "NVIDIA H200", "--json")[1])[0]
    assert fewest["k"] == 3, "the fewest within 2 %"


def test_command_says_what_there_is(results: Path) -> None:
    with pytest.raises(UsageError, match="recorded: detect on NVIDIA A100, detect on NVIDIA H200"):
        run(str(results), "--kernel", "ddc")
