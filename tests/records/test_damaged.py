"""Damaged records cost what is damaged: one line on stderr names it, and everything else is read as it was."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import autotune
from autotune import UsageError
from autotune.cli.program import app
from autotune.records.damage import NewerFormat
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.records.outcome import missing
from autotune.records.pack import pack
from autotune.records.paths import part, sweep_path
from autotune.records.table import load_trials
from autotune.search.warm_start import known
from autotune.source.registry import load_kernel
from autotune.sweep.run import Sweep

from .. import commands, outcomes
from ..conftest import EXAMPLE
from ..recorded import DEFAULT, H200, TALL, WIDE, created, record, rewrite_about, unsealed

N = len(outcomes.trials())


def rewrite_line(path: Path, number: int, /, **changes: Any) -> None:
    """Change fields of a line of trials.jsonl; without any, damage it."""
    file = path / "trials.jsonl"
    lines = file.read_text().splitlines()
    lines[number - 1] = json.dumps({**unsealed(lines[number - 1]), **changes}) if changes else '{"number": 0'
    file.write_text("\n".join(lines) + "\n")


# ---------------------------------------------------------------------- a line
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "it is not JSON"),
        ({"status": "fine"}, "status is 'fine', must be one of measured"),
        ({"status": ["measured"]}, "status is a list"),
        ({"number": -1}, "number is -1"),
        ({"number": True}, "number is True"),
        ({"number": 10**30}, "number is 1000"),
        ({"config": None}, "config is None, must be an object"),
        ({"config": {"WGS": [1]}}, "WGS is a list"),
        ({"config": {"WGS": None}}, "WGS is None"),
        ({"config": {"WGS": float("nan")}}, "NaN is not a number"),
        ({"config": {"../x": 1}}, "is '../x', must be a name"),
        ({"median_s": -1e-3}, "median_s is -0.001, must be a time"),
        ({"median_s": 0}, "median_s is 0"),
        ({"median_s": "1e-3"}, "median_s is '1e-3'"),
        ({"median_s": 1e300}, "median_s is 1e+300"),
        ({"median_s": float("inf")}, "Infinity is not a number"),
        ({"median_s": 1.0}, "is not among its samples"),
        ({"status": "wrong"}, "its status is wrong, but it has a median"),
        ({"samples_s": [1e-3, None]}, "samples_s is None"),
        ({"samples_s": 3}, "samples_s is 3"),
        ({"grid": "8"}, "grid is '8'"),
        ({"registers": 1.5}, "registers is 1.5"),
        ({"verified_on": [{}]}, "verified_on is a dict"),
        ({"stamp": None}, "stamp is None"),
    ],
)
@pytest.mark.quick
def test_a_damaged_line_is_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], why: str
) -> None:
    path = outcomes.sweep(tmp_path, verdict=False)
    rewrite_line(path, 2, **changes)
    assert [t.number for t in SweepFolder(path).trials()] == [0, *range(2, N)]
    assert len(load_trials(tmp_path)) == N - 1
    (told,) = caplog.messages
    assert told.startswith(f"{path}/trials.jsonl:2: this line is damaged and ignored: ") and why in told


def test_a_gap_in_the_numbers_of_a_sweep_without_a_verdict_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = outcomes.sweep(tmp_path, verdict=False)
    lines = (path / "trials.jsonl").read_text().splitlines(keepends=True)
    (path / "trials.jsonl").write_text("".join(reversed(lines[:3] + lines[5:])))
    assert [t.number for t in SweepFolder(path).trials()] == [0, 1, 2, *range(5, N)], "in whichever order they lie"
    (told,) = caplog.messages
    assert told.startswith(f"{path} lacks 2 trials, such as number 3")


def test_many_damaged_lines_are_one_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = outcomes.sweep(tmp_path)
    lines = (path / "trials.jsonl").read_bytes().split(b"\n")
    lines[1], lines[3], lines[4] = b"[" * 100_000, b"\xff\xfe", b'"' + b"9" * 5000
    (path / "trials.jsonl").write_bytes(b"\n".join(lines))
    assert len(SweepFolder(path).trials()) == N - 3
    (told,) = caplog.messages
    assert ":2: this line is damaged and ignored (and 2 more, such as line 4): it is nested too deeply" in told


def test_what_a_terminal_would_obey_is_shown_as_its_escape(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path, machine="a \x1b]0;title\x07 machine", refused={"\x1b[2J": 1})
    rewrite_line(path, N, message="\x1b[31mred\udcff\nand more")
    text = CliRunner().invoke(app, ["show", str(path)]).stdout
    assert "\x1b" not in text and "\\x1b]0;title\\x07 machine" in text
    assert "\\x1b[31mred\\udcff" in text and "\\x1b[2J" in text


# ---------------------------------------------------------------------- a file
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kernel": None}, "kernel is None, must be a name"),
        ({"kernel": "../x"}, "kernel is '../x', must be a name"),
        ({"problem": [1]}, "problem is a list, must be an object"),
        ({"device": {"name": "x"}}, "device lacks kind"),
        ({"device": {"name": "x", "kind": "cuda", "arch": "sm_90", "max_grid": [1]}}, "device max_grid is a list"),
        ({"device": {"name": "x", "kind": "cuda", "arch": "sm_90", "nonsense": 1}}, "'nonsense', which nothing here"),
        ({"default": {"WGS": {}}}, "default WGS is a dict"),
        ({"settings": {"seed": 10**400}}, "settings seed is 1000"),
        ({"baked": ["tabs"]}, "baked names tabs, which is not a field of problem"),
        ({"refused": {"why": -1}}, "refused why is -1"),
    ],
)
def test_a_damaged_sweep_is_left_out_of_a_tree_and_an_error_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], why: str
) -> None:
    outcomes.sweep(tmp_path, taps=32)
    path = outcomes.sweep(tmp_path)
    rewrite_about(path, **changes)
    assert len(find_sweeps(tmp_path)) == 1
    (told,) = caplog.messages
    assert told.startswith(f"{path}/sweep.json is damaged: ") and why in told and "This sweep is left out" in told
    done = CliRunner().invoke(app, ["show", str(path)])
    assert isinstance(done.exception, UsageError) and why in str(done.exception) and not done.stdout


def test_a_newer_record_is_refused_by_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, other = outcomes.sweep(tmp_path), outcomes.sweep(tmp_path, taps=32)
    rewrite_about(path, format=3, problem="something else by then")
    says = r"sweep\.json was written by a newer autotune \(format 3, this one knows 2\): update autotune"
    assert [f.path for f in find_sweeps(tmp_path)] == [other]
    assert "update autotune" in caplog.text
    with pytest.raises(NewerFormat, match=says):
        find_sweeps(path)
    before = (path / "sweep.json").read_bytes()
    with pytest.raises(NewerFormat, match=says):
        created(path, {"kernel": "filter"})
    assert (path / "sweep.json").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"winner": None}, "winner is None"),
        ({"winner": {"config": {}}}, "winner lacks median_s"),
        ({"winner": {"config": {"WGS": 1}, "median_s": 1.0}}, "the winner is not among the finalists"),
        ({"finalists": [1]}, "finalists is 1"),
        ({"counts": {"measured": "six"}}, "counts measured is 'six'"),
        ({"speed_up": float("nan")}, "NaN is not a number"),
        ({"ties": None}, "ties is None"),
        ({"stamps": {"x": "s"}}, "is 'x', must be the number of a trial"),
        ({"spent_s": {"searching": -1}}, "spent_s searching is -1"),
    ],
)
def test_a_damaged_verdict_is_told_and_the_search_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: dict[str, Any], why: str
) -> None:
    path = outcomes.sweep(tmp_path)
    verdict = unsealed((path / "verdict.json").read_text())
    (path / "verdict.json").write_text(json.dumps({**verdict, **changes}))
    (overview,) = json.loads(CliRunner().invoke(app, ["show", str(path), "--json"]).stdout)
    assert not overview["finished"] and overview["best_s"] == 2e-4
    (told,) = caplog.messages
    assert told.startswith(f"{path}/verdict.json is damaged: ") and why in told and "It is ignored" in told


# ---------------------------------------------------------------------- what a verdict was made from
@pytest.mark.parametrize("stamps", [True, False])
def test_trials_of_a_verdict_that_are_gone_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stamps: bool
) -> None:
    """An older verdict knows how many there were, and its finalists by their numbers."""
    path = outcomes.sweep(tmp_path)
    verdict = unsealed((path / "verdict.json").read_text())
    verdict |= {"stamps": {str(i): f"stamp{i}" for i in range(N)}} if stamps else {}
    (path / "verdict.json").write_text(json.dumps(verdict))
    numbers = [trial.number for trial in SweepFolder(path).trials()]
    assert missing(verdict, numbers) == (0, []) and missing(verdict, numbers[2:]) == (2, [0, 1])
    lines = (path / "trials.jsonl").read_text().splitlines(keepends=True)
    (path / "trials.jsonl").write_text("".join(lines[2:]))
    (shown,) = json.loads(CliRunner().invoke(app, ["show", str(path), "--json"]).stdout)
    assert shown["best_s"] == pytest.approx(1.02 * 2e-4)
    (told,) = caplog.messages
    assert f"{path} lacks 2 trials (numbers 0, 1)" in told


# ---------------------------------------------------------------------- neighbours
def test_a_damaged_neighbour_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = record(tmp_path, H200, {WIDE: 2.0, DEFAULT: 3.0, TALL: 4.0}, n_chan=4097)
    rewrite_line(good, 1, config={"BLOCK_C": {}})
    broken = record(tmp_path, H200, {WIDE: 2.0}, n_chan=4098)
    (broken / "trials.jsonl").write_text('[1, 2]\n{"number": 0}\n')
    strange = record(tmp_path, H200, {WIDE: 2.0}, n_chan=4099)
    rewrite_about(strange, device=7)
    for name in ("n_time=100,n_chan=inf", "n_time=nan,n_chan=1", f"n_time={'9' * 4000}"[:200], "=,=", "n_time=-inf"):
        good.with_name(name).mkdir()
    kernel = load_kernel(EXAMPLE)
    found = known(tmp_path, kernel, kernel.tuned[0], H200)
    assert [[config for config, _ in n.measured] for n in found] == [[DEFAULT, TALL]]
    assert len(caplog.messages) == 3 and f"{strange}/sweep.json is damaged: device is 7" in caplog.text


def test_a_sweep_goes_on_beside_damaged_records(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def swept(n_chan: int) -> Sweep:
        return autotune.sweep(EXAMPLE, problem={"n_chan": n_chan}, device="simulated", results=tmp_path, trials=4)

    first = swept(256)
    table = (first.path / "trials.csv").read_text().splitlines(keepends=True)
    (first.path / "trials.csv").write_text("".join([*table[:3], "torn,1\n", *table[4:]]))
    rewrite_about(first.path, settings=[], compiler=3)
    assert swept(512).best is not None
    again = swept(256)
    assert sum(again.counts.values()) == 4 and len(load_trials(first.path)) == 4, "the damaged one was tried again"
    assert "sweep.json is damaged" in caplog.text and "It is replaced" in caplog.text


# ---------------------------------------------------------------------- paths
@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../../ESC", "/etc", "x\0y", "x\ny", "x" * 201, "\udcff"])
def test_parts_of_paths_stay_inside(tmp_path: Path, name: str) -> None:
    for path in (
        sweep_path(tmp_path, name, "detect", "n=1"),
        sweep_path(tmp_path, "host", name, "n=1"),
        sweep_path(tmp_path, "host", "detect", name),
    ):
        path.mkdir(parents=True)
        inside = path.resolve().relative_to(tmp_path.resolve())
        assert len(inside.parts) == 3 and all(len(p) <= 200 for p in inside.parts)


def test_parts_that_are_plain_stay_as_they_are_and_others_stay_apart() -> None:
    for name in ("taps=256,decimation=16", "NVIDIA_H200", ".x", "a b", "x" * 200, "Müller", "50%"):
        assert part(name) == name
    odd = ["a/b", "a\\/b", "a/_b", "a\0b", "x" * 201, "x" * 202, "", ".", ".."]
    assert len({part(name) for name in odd}) == len(odd)


def test_a_string_field_of_a_problem_writes_inside_the_results(tmp_path: Path) -> None:
    definition = tmp_path / "tagged.py"
    text = Path(EXAMPLE).read_text().replace("class Detect(", "class Tagged(")
    definition.write_text(text.replace("    n_time: int", '    tag: str = baked("x")\n    n_time: int', 1))
    template = Path(EXAMPLE).with_name("detect.cu.j2").read_text()
    definition.with_name("tagged.cu.j2").write_text(template.replace("detect(", "tagged("))
    results, problem = tmp_path / "a" / "b" / "results", {"tag": "../../../../ESC", "n_chan": 64}
    found = autotune.sweep(str(definition), problem=problem, device="simulated", results=results, trials=2)
    assert found.best is not None and found.path.resolve().is_relative_to(results.resolve())
    assert [p.name for p in tmp_path.iterdir() if p.is_dir() and p.name != "__pycache__"] == ["a"]
    assert load_trials(results)["problem.tag"][0] == "../../../../ESC"


# ---------------------------------------------------------------------- checksums
def test_one_changed_character_of_what_we_wrote_is_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where a number stays one, no type tells."""
    path = outcomes.sweep(tmp_path)
    for name, before, after in (
        ("trials.jsonl", '"compile_s":0.25', '"compile_s":0.75'),
        ("verdict.json", '"registers": 44', '"registers": 45'),
        ("sweep.json", '"taps":16', '"taps":17'),
    ):
        file = path / name
        whole = file.read_text()
        assert before in whole
        file.write_text(whole.replace(before, after, 1))
        if name == "sweep.json":
            with pytest.raises(UsageError, match="does not have the sha256 that it states"):
                find_sweeps(path)
        else:
            SweepFolder(path).trials(), SweepFolder(path).outcome()
            assert any(str(file) in told and "that it states" in told for told in caplog.messages)
        file.write_text(whole)


def test_an_older_record_has_no_checksums(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = outcomes.sweep(tmp_path)
    (path / "verdict.json").write_text(json.dumps(unsealed((path / "verdict.json").read_text())))
    about = unsealed((path / "sweep.json").read_text())
    (path / "sweep.json").write_text(json.dumps({**about, "format": 1}))
    lines = (path / "trials.jsonl").read_text().splitlines()
    before = SweepFolder(path).trials()
    (path / "trials.jsonl").write_text("".join(json.dumps(unsealed(line)) + "\n" for line in lines))
    assert SweepFolder(path).trials() == before and SweepFolder(path).outcome() is not None
    assert find_sweeps(path) and not caplog.messages
    (path / "sweep.json").write_text(json.dumps(about))
    with pytest.raises(UsageError, match="does not have the sha256 that it states"):
        find_sweeps(path)


def test_a_packed_table_whose_verdict_is_damaged_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The table has no efficiencies: they follow from the roofline in the verdict."""
    path = outcomes.sweep(tmp_path)
    pack(SweepFolder(path))
    file = path / "verdict.json"
    file.write_text(file.read_text().replace('"speed_up": ', '"speed_up": 1', 1))
    assert SweepFolder(path).columns().n and SweepFolder(path).outcome() is None
    (told,) = caplog.messages
    assert told.startswith(f"{file} is damaged: its content does not have the sha256")


@pytest.mark.parametrize("name", ["sweep.json", "trials.jsonl", "verdict.json"])
def test_a_pipe_in_the_place_of_a_file_of_a_record_is_told_and_not_waited_for(tmp_path: Path, name: str) -> None:
    results = tmp_path / "results"
    pipes = [
        record(results, H200, {DEFAULT: 9.0, WIDE: 8.0}) / name,
        sweep_path(results, "simulated", "detect", "n_time=1024,n_chan=200") / name,
    ]
    for pipe in pipes:
        pipe.parent.mkdir(parents=True, exist_ok=True)
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
    kernel = ("--kernel", EXAMPLE)
    for words, pipe in (
        (("show", str(pipes[0].parent)), pipes[0]),
        (("emit", str(pipes[0].parent), *kernel, "--out", str(tmp_path / "tuned")), pipes[0]),
        (("sweep", *kernel, "--device", "simulated", "--trials", "3", "--results", str(results)), pipes[1]),
    ):
        done = commands.autotune(*words)  # which has a deadline
        assert "Traceback" not in done.stderr and done.returncode in (0, 1, 2), done.stderr
        is_replaced = words[0] == "sweep" and name == "verdict.json" and done.returncode == 0
        assert is_replaced or str(pipe) in done.stderr, done.stderr
