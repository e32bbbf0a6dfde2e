"""Replay: recorded spaces are read whatever wrote them, chance is exact, and the score means what it says."""

import gzip
import json
import math
import shlex
import subprocess
import sys
from dataclasses import asdict
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
import typer
from recorded_spaces import RecordedSpace, middle_config, read_space, read_spaces
from searches import replay as command
from simulated_searches import expected_minimum, replay

from autotune import Config, Device, UsageError
from autotune.records.trial import Trial
from autotune.records.trial_log import append

from ..recorded import created

pytestmark = pytest.mark.quick

AXES = {"X": (1, 2, 4, 8), "Y": (1, 2, 3, 4, 5), "MODE": ("row", "column")}
FAILS = {"X": 8, "Y": 5, "MODE": "row"}
SLOW = [{"X": x, "Y": 1, "MODE": "row"} for x in (1, 2, 4)]


def milliseconds(config: dict[str, Any]) -> float:
    return 1.0 + math.log2(config["X"] / 2) ** 2 + abs(config["Y"] - 4) + 0.5 * (config["MODE"] == "row")


def grid() -> list[dict[str, Any]]:
    return [dict(zip(AXES, values, strict=True)) for values in product(*AXES.values())]


def cache_text() -> str:
    """As Kernel Tuner writes it: an entry a line, a string in place of the time of a failure."""
    head = {"device_name": "GPU", "kernel_name": "k", "tune_params_keys": list(AXES), "tune_params": AXES}
    costs = {"compile_time": 200.0, "verification_time": 0, "benchmark_time": 40, "strategy_time": 1e6}
    entries = []
    for config in grid():
        time = "RuntimeFailedConfig" if config == FAILS else milliseconds(config)
        key = ",".join(str(value) for value in config.values())
        entries.append(f"{json.dumps(key)}: {json.dumps({**config, 'time': time, **costs})}")
    return json.dumps(head)[:-1] + ',\n"cache": {\n' + ",\n".join(entries) + "}\n}"


def t4_text(unit: str, per_ms: float, compilation: str = "compilation_time") -> str:
    results = [
        {
            "configuration": config,
            "times": {compilation: 200.0, "benchmark": 40, "search_algorithm": 1e6},
            "invalidity": "runtime" if config == FAILS else "correct",
            "correctness": 1,
            "measurements": [{"name": "time", "value": milliseconds(config) * per_ms, "unit": unit}],
            "objectives": ["time"],
        }
        for config in grid()
    ]
    return json.dumps({"schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds"}, "results": results})


def file(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def space(tmp_path: Path) -> RecordedSpace:
    return read_space(file(tmp_path / "space.json", cache_text()))


def sweep_folder(path: Path) -> Path:
    device = asdict(Device("GPU", "cuda", "sm_90"))
    about = {"kernel": "k", "problem": {"n": 1}, "device": device, "default": grid()[7]}
    folder = created(path / "n=1", about)
    for number, config in enumerate(grid()):
        ok = config != FAILS
        status, median_s = ("measured", 1e-3 * milliseconds(config)) if ok else ("launch_failed", None)
        took = {"compile_s": 0.2, "verify_s": 0.03, "measure_s": 0.01 if ok else None}
        append(
            folder.path,
            Trial(number=number, status=status, config=Config(config), key="key", median_s=median_s, **took),
        )
    return folder.path


# ---------------------------------------------------------------------- chance
@pytest.mark.parametrize("n_draws", [1, 2, 3, 6, 7])
def test_expected_minimum_is_the_mean_over_all_draws(n_draws: int) -> None:
    seconds = [5.0, None, 1.5, 2.0, None, 2.0, 9.0]
    best = [min(times) for draw in combinations(seconds, n_draws) if (times := [s for s in draw if s is not None])]
    assert expected_minimum(seconds, n_draws) == pytest.approx(sum(best) / len(best))


def test_random_search_scores_as_chance_does_and_the_optimum_scores_one(space: RecordedSpace) -> None:
    chance = replay(space, "random", trials=5, repeats=400)
    assert chance.score == pytest.approx(0.0, abs=0.2)
    assert replay(space, "random", trials=len(space.configs), repeats=2).score is None
    assert replay(space, "gp", trials=30, repeats=5).score == pytest.approx(1.0, abs=0.3)


# ---------------------------------------------------------------------- replays
@pytest.mark.parametrize("ahead", [1, 6])
def test_auto_searches_better_than_chance_and_the_same_again_for_a_seed(space: RecordedSpace, ahead: int) -> None:
    first, again = (replay(space, "auto", trials=20, repeats=4, ahead=ahead, seed=3) for _ in range(2))
    assert first.found_s == again.found_s and first.searcher == "gp"
    assert first.score is not None and first.score > 0.5
    assert first.simulated_s == pytest.approx(20 * 0.24) and first.n_failed == 1


def test_processes_give_what_one_process_gives(space: RecordedSpace) -> None:
    counts: list[int] = []
    spread = replay(space, "tpe", trials=10, repeats=4, jobs=2, progress=counts.append)
    assert spread.found_s == replay(space, "tpe", trials=10, repeats=4).found_s
    assert counts == [1, 2, 3, 4]


def test_auto_is_exhaustive_when_the_trials_hold_the_space(space: RecordedSpace) -> None:
    whole = replay(space, "auto", trials=1000, repeats=1)
    assert (whole.searcher, whole.trials, whole.median_ratio) == ("exhaustive", len(space.configs), 1.0)


def test_repeats_that_find_nothing_are_told(tmp_path: Path) -> None:
    configs = tuple(Config(X=x) for x in range(50))
    space = RecordedSpace("x", configs, (*[None] * 49, 1.0), (0.0,) * 50, configs[0])
    assert replay(space, "random", trials=2, repeats=20).n_empty > 10


def test_command_prints_the_random_arm_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path / "space.json", cache_text())
    command([path], ["tpe"], trials=8, repeats=2, jobs=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("space: 40 configs, 1 of which fail; 8 trials, 2 repeats, 1 ahead, compiles of 1; ")
    assert [line.split()[0] for line in lines[1:]] == ["sampler", "tpe", "random"]
    command([path], ["tpe"], trials=8, repeats=2, jobs=1, json=True)
    answer = json.loads(capsys.readouterr().out)
    assert [one["sampler"] for one in answer] == ["tpe", "random"] and answer[0]["n_configs"] == 40


# ---------------------------------------------------------------------- records
def test_parameters_that_a_cache_says_are_absent_are_absent(tmp_path: Path) -> None:
    content = json.loads(cache_text())
    content["autotune"] = {"absent": "column"}
    (configs,) = {read_space(file(tmp_path / "cache.json", json.dumps(content))).configs}
    assert {tuple(config) for config in configs} == {("X", "Y"), ("X", "Y", "MODE")}


def test_every_format_gives_the_same_space(tmp_path: Path) -> None:
    paths = [
        file(tmp_path / "cache.json", cache_text()),
        file(tmp_path / "cache.json.gz", cache_text()),
        file(tmp_path / "t4.json", t4_text("ms", 1.0)),
        file(tmp_path / "t4.json.gz", t4_text("us", 1e3, "compilation")),
        file(tmp_path / "seconds.json", t4_text("", 1.0)),
        file(tmp_path / "hub.json", t4_text("miliseconds", 1.0)),
        file(tmp_path / "capital.json", t4_text("Milliseconds", 1.0)),
        sweep_folder(tmp_path),
    ]
    for path in paths:
        space = read_space(path)
        assert space.configs == tuple(Config(c) for c in grid())
        assert space.n_failed == 1 and space.optimum_s == pytest.approx(1e-3)
        costs = {round(s, 9) for s in space.spent_s}
        assert costs == ({0.24, 0.23} if path.is_dir() else {0.24})
    assert read_space(paths[-1]).default == Config(grid()[7])
    assert read_space(paths[-1] / "trials.jsonl").name == "k n=1, GPU"


@pytest.mark.parametrize("suffix", ["", ",", ',\n"8,5,col', ',\n"8,5,column": {"X": 8, "Y": {'])
def test_a_cache_that_was_cut_off_is_read_as_far_as_it_is_whole(tmp_path: Path, suffix: str) -> None:
    whole = cache_text()
    cut = whole[: whole.rindex(",\n")] + suffix
    assert len(read_space(file(tmp_path / "cut.json", cut)).configs) == 39
    packed = gzip.compress(whole.encode())
    (tmp_path / "cut.json.gz").write_bytes(packed[: len(packed) * 9 // 10])
    assert 20 < len(read_space(tmp_path / "cut.json.gz").configs) < 40


def test_without_a_default_the_middle_of_the_axes_is_taken() -> None:
    assert middle_config([Config(c) for c in grid()]) == Config(X=2, Y=3, MODE="row")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "is neither JSON"),
        ("[1]", "is neither JSON"),
        ('{"a": 1}', "neither a Kernel Tuner cache"),
        ('{"cache": {"1": {"X": 1, "time": 1}}, "tune_params_keys": ["X"]}', "records 1 configs"),
        ('{"cache": {"1": {"time": 1}}, "tune_params_keys": ["X"]}', "damaged"),
        (cache_text().replace('"time":', '"__error__": "E", "time":'), "all of them failed"),
    ],
)
def test_what_cannot_be_replayed_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_space(file(tmp_path / "space.json", text))


def test_folders_of_records_are_searched_for_sweeps(tmp_path: Path) -> None:
    sweep, cache = sweep_folder(tmp_path / "results" / "k"), file(tmp_path / "space.json", cache_text())
    device = asdict(Device("GPU", "cuda", "sm_90"))
    about = {"kernel": "k", "problem": {"n": 2}, "device": device, "default": grid()[7]}
    for folder in ("results/k/n=2", "empty/n=2"):
        created(tmp_path / folder, about)  # nothing was tried in it
    spaces, left_out = read_spaces([tmp_path / "results", cache, sweep])
    assert [space.name for space in spaces] == ["k n=1, GPU", "space"]
    assert [path.name for path in left_out] == ["n=2"]
    with pytest.raises(UsageError, match=r"no sweep under .*empty can be searched; the first: "):
        read_spaces([tmp_path / "empty"])
    (tmp_path / "nothing").mkdir()
    with pytest.raises(UsageError, match="holds no recorded sweep"):
        read_spaces([tmp_path / "nothing"])


def test_missing_paths_and_senseless_numbers_are_told(tmp_path: Path, space: RecordedSpace) -> None:
    for path, message in ((tmp_path / "none.json", "cannot read"), (tmp_path, "is not a recorded sweep")):
        with pytest.raises(UsageError, match=message):
            read_space(path)
    with pytest.raises(UsageError, match="repeats is 0"):
        replay(space, repeats=0)
    with pytest.raises(UsageError, match="no sampler"):
        replay(space, "annealing")


def test_the_commands_of_the_page_can_be_typed() -> None:
    """Those of docs/search.md."""
    root, app = Path(__file__).parents[2], typer.Typer()
    app.command()(command)
    lines = [line.split("benchmarks/searches.py ") for line in (root / "docs" / "search.md").read_text().splitlines()]
    words = [shlex.split(line[1]) for line in lines if len(line) == 2]
    assert len(words) == 2
    for each in words:
        typer.main.get_command(app).make_context("searches", each)  # raises for an option that it does not take
    case = "out_type=float16,scale_offset=False,missing=True,n_beams=1,n_freqs=1024,n_times=2048"
    sweep = f"results/NVIDIA_H200/dequantize/{case}"
    for place, status in ((sweep, 0), ("nothing", 2)):
        program = [sys.executable, "benchmarks/searches.py", place, "--trials", "5", "--repeats", "2", "--jobs", "2"]
        done = subprocess.run(program, cwd=root, capture_output=True, text=True)
        assert done.returncode == status, done.stderr
    assert "cannot read nothing" in done.stderr
