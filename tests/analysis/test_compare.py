"""Noise, and whether two sets of records agree."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autotune.analysis.noise import noise, pairs
from autotune.cli.program import app
from autotune.records.folder import find_sweeps
from autotune.records.record import SweepRecord
from autotune.records.trial_log import as_row

from ..recorded import DEFAULT, H200, TALL, WIDE, record

pytestmark = pytest.mark.quick


def sweeps(path: Path) -> list[SweepRecord]:
    return [SweepRecord.of(folder) for folder in find_sweeps(path)]


def with_finals(folder: Path, factor: float) -> None:
    """A final round in which every config took ``factor`` times what it took in the search."""
    sweep = SweepRecord.of(find_sweeps(folder)[0])
    finalists = [{**as_row(t), "median_s": factor * (t.median_s or 0.0)} for t in sweep.measured]
    (folder / "verdict.json").write_text(json.dumps({"winner": finalists[0], "finalists": finalists}))


def test_noise_is_how_far_the_final_round_is_from_the_search(tmp_path: Path) -> None:
    for n_chan, factor in ((16, 1.01), (32, 0.99), (64, 1.01)):
        with_finals(record(tmp_path, H200, {WIDE: 2.0, DEFAULT: 3.0}, n_chan=n_chan), factor)
    (found,) = noise(sweeps(tmp_path)).values()
    assert (found.device, found.n) == ("NVIDIA H200", 6) and found.typical == pytest.approx(0.01)
    assert "1.00 % (median)" in str(found)
    assert noise([]) == {}


def test_pairs_are_judged_by_the_noise_and_by_exchanging_winners(tmp_path: Path) -> None:
    for n_chan, factor in ((16, 1.01), (32, 0.99), (64, 1.01)):
        with_finals(record(tmp_path / "a", H200, {WIDE: 2.0, DEFAULT: 3.0, TALL: 2.2}, n_chan=n_chan), factor)
        with_finals(record(tmp_path / "b", H200, {WIDE: 2.5, TALL: 2.01}, n_chan=n_chan), 1.0)
    record(tmp_path / "a", H200, {WIDE: 2.0}, n_chan=128)
    found = pairs(sweeps(tmp_path / "a"), sweeps(tmp_path / "b"))
    assert len(found) == 3 and not any(p.same_config for p in found)
    assert {p.relation for p in found} == {"same", "slower"}  # 2.01 after 2.02, and after 1.98
    assert found[0].exchanged == (pytest.approx(0.1), pytest.approx(2.5 / 2.01 - 1))


def test_the_command_tells_both(tmp_path: Path) -> None:
    for name, best in (("a", 2.0), ("b", 3.0)):
        with_finals(record(tmp_path / name, H200, {WIDE: best, TALL: 4.0}, n_chan=16), 1.0)
    words = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0 and "+50.00 %" in told.output and "0 same, 0 faster, 1 slower" in told.output
    data = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert data["problems"][0]["relation"] == "slower"


def test_problems_are_told_by_the_fields_that_differ(tmp_path: Path) -> None:
    for n_chan in (16, 32):
        for name, best in (("a", 2.0), ("b", 3.0)):
            with_finals(record(tmp_path / name, H200, {WIDE: best, TALL: 4.0}, n_chan=n_chan), 1.0)
    lines = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b")]).output.splitlines()
    assert lines[:2] == ["detect on NVIDIA H200", "all of detect have n_time=100"]
    assert {line.split()[0] for line in lines[3:5]} == {"n_chan=16", "n_chan=32"}


def test_of_many_equal_pairs_chance_makes_some_differ(tmp_path: Path) -> None:
    for n_chan in range(16, 36):
        for name in ("a", "b"):
            with_finals(record(tmp_path / name, H200, {WIDE: 2.0, TALL: 4.0}, n_chan=n_chan), 1.01)
    told = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert "20 in both: 20 same" in told.output and "1 expected to differ by chance" in " ".join(told.output.split())
