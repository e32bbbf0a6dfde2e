"""The packed table: it gives back what was recorded, in fewer bytes, and may be killed while it is written."""

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from autotune import Config
from autotune.cli import app
from autotune.core import files
from autotune.core.errors import Status
from autotune.core.schema import Unsound
from autotune.records.cell import DIGEST, EXTENT, rounded, samples_of, samples_text, value_cell, value_of_cell
from autotune.records.folder import SweepFolder
from autotune.records.measurement import summary_of
from autotune.records.pack import pack
from autotune.records.packed import TABLE, read_table, table_text
from autotune.records.trial import Trial, as_recorded_trial
from autotune.records.trial_log import TRIALS, append, recordable

from .. import outcomes
from ..recorded import DEFAULT, H200, TALL, WIDE, record, rewrite_about

MESSAGES = ("", "plain", 'a "quote", and # a hash', "two\nlines", "Müller \U0001f600")


def drawn(rng: random.Random, number: int) -> Trial:
    """Returns a trial of any figures, which need not go together."""
    config: dict[str, Any] = {"WGS": rng.choice((1, 64, 2**40)), "FAST": rng.choice((True, False))}
    if rng.random() < 0.5:
        config["sum"] = rng.choice(("1", "true", "", "a,b", 'x"y', "-inf", "1e5", " pad "))
    if rng.random() < 0.5:
        config["number"] = rng.choice((1.5, 1e-30, 3))
    trial = Trial(number=number, status=Status.MEASURED, config=Config(config), at="2026-11-01T10:00:01+00:00")
    if rng.random() < 0.3:
        return replace(trial, status=Status.WRONG, message=rng.choice(MESSAGES), at=rng.choice(("", "at noon")))
    median_s = 10 ** rng.uniform(-9, 3)
    launches = {"function": "fold", "grid": [3, 1, 1], "block": [64, 2, 1], "registers": 9}
    return replace(
        trial,
        key=f"{rng.getrandbits(48):012x}",
        code=rng.choice((f"{rng.getrandbits(64):016x}", "own words", "")),
        compiler=rng.choice(("", "nvcc")),
        compile_s=rng.choice((None, 0.0123, 1234.5)),
        registers=rng.choice((None, 0, 255)),
        grid=rng.choice((None, (7, 1, 1), (1, 1, 1), (3, 2, 5))),
        launches=rng.choice(((), (launches, {**launches, "shared_bytes": 5}))),
        median_s=median_s,
        q1_s=0.9 * median_s,
        n_samples=3,
        cold=rng.choice((None, True, False)),
        joules=rng.choice((None, 0.1)),
        metrics=rng.choice(({}, {"edp": 1.25})),
        max_error=rng.choice((None, 0.0, 1.234e-7)),
        rule=1,
        checks=rng.choice(((), ("poison", "timed-size"))),
        verified_on=rng.choice(((), ("n=1", "n=2 (against A=1)"))),
        others=rng.choice(({}, {"stalls": {"barrier": [3, 4]}})),
    )


@pytest.mark.quick
@pytest.mark.parametrize("seed", range(20))
def test_a_table_gives_back_its_trials(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    trials = [as_recorded_trial(drawn(rng, n)) for n in range(rng.choice((1, 2, 40)))]
    (tmp_path / TABLE).write_text(table_text(trials, {}))
    table = read_table(tmp_path, {})
    assert table.damaged == {} and table.trials() == trials
    assert [dict(t.config) == dict(u.config) for t, u in zip(table.trials(), trials, strict=True)]
    kinds = [[type(v) for v in t.config.values()] for t in table.trials()]
    assert kinds == [[type(v) for v in t.config.values()] for t in trials], "True is not 1"
    assert len(pd.read_csv(tmp_path / TABLE, skiprows=1)) == len(trials)


@pytest.mark.quick
def test_cells_give_back_what_they_were_given() -> None:
    for value in (True, False, 0, -5, 1.5, 1e300, "", "1", "true", "nan", '"', "a b", "-inf", "1_0", "x,y"):
        again = value_of_cell(value_cell(value))
        assert again == value and type(again) is type(value)
    for digest in ("af900c520c42", "0" * 16, "", "xyz", "AB", "abc"):
        assert DIGEST.read(DIGEST.write(digest)) == digest
    for extent in ((1, 1, 1), (7, 1, 1), (1, 2, 1), (1, 1, 5), (3,), (3, 1)):
        assert tuple(EXTENT.read(EXTENT.write(extent))) == extent
    ns = rounded(7, "n")
    assert [ns.write(s) for s in (5.7088e-05, 1.25e-9, 3.0)] == ["57088", "1.25", "3000000000"]
    for samples in ((5.5583999e-05, 5.6e-05, 0.017280223846), (1.5e-9, 0.1), (3e-7,), ()):
        assert samples_of(samples_text(samples)) == pytest.approx(samples, rel=1e-7)
    for damaged in ("32ns 5 ?", "s", "32ns x c-k", ""):
        with pytest.raises((Unsound, ValueError)):
            samples_of(damaged)


@pytest.mark.quick
def test_each_changed_character_of_a_table_costs_a_line_or_is_told(tmp_path: Path) -> None:
    trials = [recordable(each) for each in outcomes.trials()]
    whole = table_text(trials, {})
    rng, n_lost = random.Random(3), 0
    for place in rng.sample(range(len(whole)), 150):
        changed = whole[:place] + rng.choice([c for c in "x7,\n" if c != whole[place]]) + whole[place + 1 :]
        (tmp_path / TABLE).write_text(changed)
        try:
            table = read_table(tmp_path, {})
        except Unsound:
            continue
        assert table.damaged
        n_lost += len(trials) - table.n
    assert n_lost


def whole(path: Path) -> tuple[object, ...]:
    """All that a record says."""
    folder = SweepFolder(path)
    trials, outcome, about, digests = folder.trials(), folder.outcome(), folder.about(), folder.digests()
    trials = [as_recorded_trial(replace(t, samples_s=(), stamp="")) for t in trials]
    own = [digests.of_own_compiler(t, about.compiler) for t in trials]
    left_out = {"work": {}, "constraints": [], "preference_among_ties": ""}
    return own, rounded_json(outcome.content) if outcome else None, {**about.content, **left_out}


def rounded_json(value: Any) -> Any:
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.6g}"))


@pytest.mark.quick
def test_an_older_record_is_turned_over(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path)
    before = whole(path)
    rewrite_about(path, invented={"by": "a later version"})
    pack(SweepFolder(path))
    assert sorted(p.name for p in path.iterdir()) == ["sweep.json", "trials.csv", "verdict.json"]
    trials, outcome, about = whole(path)
    assert (trials, outcome) == before[:2] and about == before[2] | {"invented": {"by": "a later version"}}
    again = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    pack(SweepFolder(path))
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == again


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("n_newer", [0, 1])
def test_it_may_be_killed_at_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_newer: int) -> None:
    """Nothing is lost, nothing is twice, and another try ends as one that was not killed."""
    path = outcomes.sweep(tmp_path / "made")
    if n_newer:
        pack(SweepFolder(path))
        append(path, replace(SweepFolder(path).trials()[0], number=16, message="newer"))
    before = whole(path)
    steps = [0]

    def stepping(right: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            steps[0] -= 1
            if steps[0] == 0:
                raise _KilledError
            return right(*args, **more)

        return step

    monkeypatch.setattr(files.os, "replace", stepping(os.replace))
    monkeypatch.setattr(Path, "unlink", stepping(Path.unlink))
    monkeypatch.setattr(Path, "write_bytes", stepping(Path.write_bytes))
    ends = set()
    for n in range(1, 40):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        copy = shutil.copytree(tmp_path / "made", tmp_path / "copy") / path.relative_to(tmp_path / "made")
        steps[0] = n
        try:
            pack(SweepFolder(copy))
            ends.add(n)
        except _KilledError:
            steps[0] = 0
            assert whole(copy) == before
            pack(SweepFolder(copy))
        steps[0] = 0
        assert whole(copy) == before and not (copy / TRIALS).exists()
    assert ends and min(ends) > 6, "it was killed several times"


def test_a_damaged_line_keeps_a_record_from_being_packed(tmp_path: Path) -> None:
    path = record(tmp_path, H200, {DEFAULT: 9.0, WIDE: 8.0, TALL: 7.0})
    lines = (path / TRIALS).read_text().splitlines(keepends=True)
    (path / TRIALS).write_text("".join([lines[0], "damaged\n", *lines[2:]]))
    before = (path / TRIALS).read_bytes()
    with pytest.raises(Exception, match=r"trials.jsonl:2 is damaged: .* The record stays as it is"):
        pack(SweepFolder(path))
    assert (path / TRIALS).read_bytes() == before and not (path / TABLE).exists()


@pytest.mark.parametrize(
    "figures",
    [
        {"registers": -1},
        {"registers": "many"},
        {"shared_bytes": 1.5},
        {"median_s": float("nan")},
        {"median_s": -1.0},
        {"median_s": 1.0, "q1_s": 5.0},
        {"clock_hz": float("inf")},
        {"code": "a\x1bb"},
        {"launches": ({"function": "no name"},)},
        {"compile_s": object()},
        {"code": None},
        {"workspace_bytes": False},
        {"metrics": {"edp": float("nan")}},
    ],
)
def test_nonsense_of_a_device_costs_its_trial(figures: dict[str, Any]) -> None:
    trial = Trial(number=3, status=Status.MEASURED, config=Config(WGS=64), key="k", **figures)
    failed = recordable(trial)
    assert (
        failed.status == "definition_failed"
        and failed.median_s is None
        and next(iter(figures)).removesuffix("_s") in failed.message
    )
    assert failed.config == trial.config and recordable(failed) == failed
    json.dumps(failed.message)


def test_samples_that_are_all_equal_have_their_median_among_them() -> None:
    for seconds in (4.925324999e-06, 1 / 3, 1.00000005):
        found = {**summary_of((seconds,) * 5), "samples_s": (seconds,) * 5}
        assert recordable(Trial(number=0, status=Status.MEASURED, config=Config(A=1), **found)).median_s


def test_the_command_packs_all_and_they_share_their_files(tmp_path: Path) -> None:
    paths = [outcomes.sweep(tmp_path, taps=taps) for taps in (8, 16)]
    before = [whole(path) for path in paths]
    done = CliRunner().invoke(app, ["pack", str(tmp_path)])
    assert done.exit_code == 0 and "2 sweeps, 0 left as they are" in done.output, done.output
    assert [whole(path)[:2] for path in paths] == [each[:2] for each in before]
    assert not list(tmp_path.rglob(TRIALS)) and len(list(tmp_path.rglob("setup-*.json"))) == 1
    (paths[0] / TABLE).write_text("nothing\n")
    done = CliRunner().invoke(app, ["pack", str(tmp_path)])
    assert done.exit_code == 1 and "1 left as they are" in " ".join(done.output.split()), done.output
    assert (paths[0] / TABLE).read_text() == "nothing\n"


def test_a_newer_line_with_more_parameters_is_of_the_same_trial(tmp_path: Path) -> None:
    """A kernel's space has them only since then. The config stays as it was; a trial of other values is another one."""
    path = record(tmp_path, H200, {DEFAULT: 30.0, WIDE: 20.0})
    first, second = SweepFolder(path).trials()
    for is_packed in (False, True):
        if is_packed:
            pack(SweepFolder(path))
        append(path, replace(first, config=Config(**first.config, NEW=1), checks=("poison", f"{is_packed}")))
        append(path, replace(second, config=Config(**{**second.config, "BLOCK_C": 7})))
        trials = SweepFolder(path).trials()
        assert [(t.number, t.config) for t in trials[:2]] == [(0, first.config), (1, second.config)]
        assert trials[0].checks == ("poison", f"{is_packed}") and len(trials) == 3
    pack(SweepFolder(path))
    packed = SweepFolder(path).trials()
    assert [(t.number, t.config, t.checks) for t in packed] == [(t.number, t.config, t.checks) for t in trials]
