"""`autotune show`: the verdict with its proof, failures that can be reproduced, and shares that add up to the truth."""

import json
from dataclasses import replace
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import pytest

from autotune import Config, UsageError
from autotune.analysis.failing_values import failing_values, failure_counts
from autotune.analysis.importance import epsilon_squared, importances
from autotune.cli.commands.show import show
from autotune.cli.tables import bar
from autotune.core.errors import Status
from autotune.records.folder import SweepFolder
from autotune.records.trial import Trial

from .. import outcomes

pytestmark = pytest.mark.quick
VERIFY = "autotune verify --kernel filter --problem taps=16,n_samples=4096 --config {} --device cuda"


def shown(capsys: pytest.CaptureFixture[str], *paths: Path, everything: bool = False, json: bool = False) -> str:
    show(list(paths), everything, json)
    return capsys.readouterr().out


def test_one_sweep_is_told_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, outcomes.sweep(tmp_path))
    for part in (
        "filter taps=16,n_samples=4096 on NVIDIA H200",
        "winner       ALGORITHM=register,WGS=128,PHASES=4",
        "median       204 us (95 % interval 202 us .. 206 us), 3 launches, cold L2, GPU time",
        "verified     against the reference at n_samples=1; the timed size; largest error 1.5e-07 of rms(reference)",
        VERIFY.format(outcomes.BEST),
        "its median   408 us",
        "speed-up     2.000 x the default (1.960 to 2.040 from the 95 % intervals)",
        "1 other config ties with the fastest (within 0.5 %); among ties the one with fewer registers wins",
        "wrong (1), first trial 13: why wrong",
        f"    {VERIFY.format(outcomes.SUBGROUP[4])}",
        "3 configs violate: a block has a warp",
        "time         8 s: 75.0 % measuring, 25.0 % searching; idle share 25.0 %",
        "best so far  400 us to 200 us over 16 trials, found by trial 5",
        "ALGORITHM ",
    ):
        assert part in text, f"{part!r} is not in\n{text}"
    (fastest,) = [line for line in text.splitlines() if line.startswith("fastest")]
    assert "winner" in fastest and "and more" not in text


def test_several_sweeps_are_a_line_each_in_the_order_of_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for taps in (128, 16):
        outcomes.sweep(tmp_path, taps=taps)
    outcomes.sweep(tmp_path, taps=32, verdict=False)
    lines = shown(capsys, tmp_path).splitlines()
    assert lines[:2] == ["3 sweeps of filter on NVIDIA H200", "all of filter have n_samples=4096"]
    assert [line.split()[0] for line in lines[2:6]] == ["problem", "taps=16", "taps=32", "taps=128"]
    assert lines[3].split()[1:] == ["16", "10", "204", "us", "408", "us", "2.000", "49.0", "%", str(outcomes.BEST)]
    assert lines[4].endswith("PHASES=4 (so far)") and "final round" not in "".join(lines)
    assert shown(capsys, tmp_path, everything=True).count("winner       ALGORITHM") == 3
    outcomes.sweep(tmp_path, device="NVIDIA A100")
    assert shown(capsys, tmp_path).splitlines()[2].split()[:2] == ["device", "problem"]


def test_paths_are_shown_together_and_each_sweep_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = outcomes.sweep(tmp_path / "a", taps=16), outcomes.sweep(tmp_path / "b", taps=32)
    lines = shown(capsys, tmp_path / "a", other, one).splitlines()
    assert lines[0] == "2 sweeps of filter on NVIDIA H200" and [x.split()[0] for x in lines[3:5]] == [
        "taps=16",
        "taps=32",
    ]
    outcomes.sweep(tmp_path / "b", taps=16, device="NVIDIA A100")
    lines = shown(capsys, one, tmp_path / "b" / "NVIDIA_A100").splitlines()  # one problem, which nothing tells apart
    assert lines[1].split()[:2] == ["device", "problem"] and "taps=16,n_samples=4096" in lines[2]


def test_json_has_the_overview_of_each_and_the_details_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes.sweep(tmp_path)
    (one,) = json.loads(shown(capsys, tmp_path, json=True))
    assert one["best_so_far_s"] == [4e-4, 3e-4, 3e-4, 3e-4, *[2e-4] * 12]
    assert one["spent"] == {
        "total_s": 8.0,
        "seconds": {"measuring": 6.0, "searching": 2.0},
        "shares": {"measuring": 0.75, "searching": 0.25},
        "idle_share": 0.25,
    }
    assert one["winner"]["efficiency"] == pytest.approx(0.5 / 1.02)
    assert one["winner"]["reproduce"] == VERIFY.format(outcomes.BEST)
    assert one["failures"][7]["reproduce"] == VERIFY.format(outcomes.SUBGROUP[4])
    assert [f["status"] for f in one["failures"]] == outcomes.FAILURES
    assert one["verdict"]["ties"] == [1] and one["sweep"]["commit"] == "0123456789ab"
    outcomes.sweep(tmp_path, taps=32)
    first, _ = json.loads(shown(capsys, tmp_path, json=True))
    assert first == {name: one[name] for name in first} and "verdict" not in first
    assert one in json.loads(shown(capsys, tmp_path, everything=True, json=True))


def test_a_sweep_without_a_verdict_or_without_a_time_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = outcomes.sweep(tmp_path, verdict=False)
    text = shown(capsys, path)
    assert "unfinished" in text and "200 us (quartiles 180 us .. 220 us)" in text and "95 % interval" not in text
    trials = path / "trials.jsonl"
    trials.write_text("".join(line for line in trials.read_text().splitlines(True) if '"measured"' not in line))
    text = shown(capsys, path)
    assert "winner       none: no config passed verification and was timed" in text and "launch_failed (1)" in text
    trials.unlink()
    assert "trials       none" in shown(capsys, path)


def test_a_damaged_verdict_is_told_and_taken_as_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = outcomes.sweep(tmp_path)
    (path / "verdict.json").write_text('{"winner": ')
    assert "unfinished" in shown(capsys, path)
    (told,) = caplog.messages
    assert f"{path}/verdict.json is damaged" in told and "It is ignored" in told


# ---------------------------------------------------------------------- values that fail
def drawn(n: int, fails: dict[str, Any], seed: int = 3) -> list[Trial]:
    """Trials of four parameters, of which those fail that have all of these values, and five more by chance."""
    rng, made = Random(seed), list[Trial]()
    for number in range(n):
        config = Config(A=rng.choice([1, 2, 4]), B=rng.choice([0, 1]), C=rng.choice("xyz"), D=rng.choice([8, 16]))
        wrong = number < 5 or all(config[name] == value for name, value in fails.items())
        measured = {"status": Status.WRONG, "median_s": None} if wrong else {"status": Status.MEASURED, "median_s": 1.0}
        made.append(Trial(number=number, config=config, key=None, stamp="s", **measured))
    return made


@pytest.mark.parametrize("fails", [{"B": 1}, {"B": 1, "A": 2}, {"C": "y", "D": 8}])
def test_the_values_that_all_fail_are_found(fails: dict[str, Any]) -> None:
    made = drawn(150, fails)
    first, *rest = failing_values(made, Status.WRONG)
    assert dict(first.values) == fails
    assert first.n == sum(all(t.config[name] == value for name, value in fails.items()) for t in made)
    assert not rest and failing_values(made, Status.LAUNCH_FAILED) == []


def test_values_are_not_named_where_everything_fails_or_too_little() -> None:
    assert failing_values(drawn(150, {}), Status.WRONG) == []
    assert failing_values(drawn(150, {"A": 99}), Status.WRONG) == []  # five by chance


def test_failures_are_counted_by_value_and_those_that_tell_most_come_first() -> None:
    made = drawn(150, {"B": 1, "A": 2})
    counts = failure_counts(made)
    assert set(list(counts)[:2]) == {"A", "B"}
    for name, values in counts.items():
        assert {each.value for each in values} == {trial.config[name] for trial in made}
        for each in values:
            own = [trial for trial in made if trial.config[name] == each.value]
            assert each.n == len(own)
            assert each.failed.get(Status.WRONG, 0) == sum(trial.status == Status.WRONG for trial in own)
    assert failure_counts([t for t in made if t.status == Status.MEASURED]) == {}
    assert failure_counts([t for t in made if t.status == Status.WRONG]) == {}, "all fail alike"


# ---------------------------------------------------------------------- several sweeps
def test_sweeps_of_one_kernel_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes.sweep(tmp_path)
    show([tmp_path], kernel="filter")
    assert "filter taps=16" in capsys.readouterr().out
    with pytest.raises(UsageError, match="no sweep of --kernel ddc is recorded here; the recorded kernels are filter"):
        show([tmp_path], kernel="ddc")


def test_parameters_across_sweeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for taps in (16, 32, 64):
        outcomes.sweep(tmp_path, taps=taps)
    show([tmp_path], parameters=True, json=True)
    found = {each["parameter"]: each for each in json.loads(capsys.readouterr().out)["filter"]}
    trials = outcomes.trials()
    alone = {each.name: each for each in importances(trials)}
    assert found.keys() == {name for name, each in alone.items() if len(each.values) > 1}
    for name, each in found.items():
        assert each["n_sweeps"] == 3 and each["share"] == alone[name].share
        assert each["winners"] == [{"value": outcomes.BEST[name], "n": 3}]
        best = alone[name].values[0]
        assert each["fixed"] == {"value": best.value, "n_sweeps": 3, "median_loss": 0.0, "worst_loss": 0.0}
    show([tmp_path], parameters=True)
    text = capsys.readouterr().out
    assert text.startswith("filter: 3 sweeps\n") and "128 (3)" in text


# ---------------------------------------------------------------------- importance
def made(effects: dict[Config, float]) -> list[Trial]:
    """Trials whose log times are given."""
    return [Trial(number=i, status="measured", config=c, median_s=exp(y)) for i, (c, y) in enumerate(effects.items())]


def test_importance_is_the_share_of_variance_that_a_parameter_explains() -> None:
    """A balanced grid of additive effects and noise: shares come out as the variances that went in."""
    noise = Random(0).gauss
    grid = [Config(BIG=b, SMALL=s, NONE=n, REPEAT=r) for b in (1, 2) for s in (1, 2) for n in (1, 2) for r in range(50)]
    found = importances(made({c: 3 * c.BIG + 1 * c.SMALL + noise(0, 0.5) for c in grid}))
    shares = {each.name: each.share for each in found}
    whole = 9 / 4 + 1 / 4 + 1 / 4
    assert [each.name for each in found][:2] == ["BIG", "SMALL"]
    assert shares["BIG"] == pytest.approx(9 / 4 / whole, abs=0.03)
    assert shares["SMALL"] == pytest.approx(1 / 4 / whole, abs=0.03)
    assert shares["NONE"] == pytest.approx(0, abs=0.01) and shares["REPEAT"] == pytest.approx(0, abs=0.05)


def test_importance_of_a_conditional_parameter_is_among_the_configs_that_have_it() -> None:
    found = importances(outcomes.trials())
    by_name = {each.name: each for each in found}
    phases = by_name["PHASES"]
    assert phases.n_trials == 6 and [(v.value, v.n_trials) for v in phases.values] == [(4, 2), (2, 2), (8, 2)]
    assert [v.loss for v in phases.values] == pytest.approx([0, 1, 3])
    alone = made({Config(A="x", B=1): 0.0, Config(A="x", B=2): 1.0, Config(A="y"): 5.0})
    assert {each.name: (each.share is None, each.n_trials) for each in importances(alone)} == {
        "A": (False, 3),
        "B": (True, 2),  # as many values as trials
    }
    assert by_name["ALGORITHM"].share is None  # one value among the measured
    assert importances([replace(alone[0], median_s=None, status="wrong")]) == ()


def test_epsilon_squared_takes_off_what_chance_explains() -> None:
    noise = Random(1).random
    chance = [epsilon_squared([[noise() for _ in range(4)] for _ in range(5)]) or 0.0 for _ in range(200)]
    assert sum(chance) / len(chance) < 0.12  # the plain ratio of variances would be 4 / 19 = 0.21
    assert epsilon_squared([[1.0, 1.0], [2.0, 2.0]]) == 1.0
    assert epsilon_squared([[1.0, 1.0], [1.0]]) is None and epsilon_squared([[1.0], [2.0]]) is None


# ---------------------------------------------------------------------- pictures
@pytest.mark.parametrize(("share", "drawn"), [(0.0, ""), (1.0, "████"), (0.5, "██"), (0.28, "█▏"), (7.0, "████")])
def test_a_bar_is_drawn_in_eighths(share: float, drawn: str) -> None:
    assert bar(share, width=4) == drawn


def test_a_record_is_read_while_a_sweep_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = outcomes.sweep(tmp_path, verdict=False)
    with open(path / "trials.jsonl", "ab") as file:
        file.write(b'{"number": 16, "sta')
    assert "6 measured" in shown(capsys, path)
    assert len(SweepFolder(path).trials()) == 16
