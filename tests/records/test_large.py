"""A large record costs what its trials cost: each line is parsed once, and pages draw some thousand of them."""

import importlib.util
import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from autotune.analysis import importance
from autotune.cli.program import app
from autotune.records import packed
from autotune.records import trial_log as trials
from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord
from autotune.report import one
from autotune.report.blocks import MOST_DOTS, Picture, figures, sampled, sampling_text

N = 5000
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "large_record.py"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of the benchmark, of fewer trials."""
    spec = importlib.util.spec_from_file_location("large_record", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    path: Path = script.make(tmp_path_factory.mktemp("large"), N)
    return path


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """Counts the calls of a function, in a list of one number."""
    calls, right = [0], getattr(owner, name)

    def counting(*args: Any, **more: Any) -> Any:
        calls[0] += 1
        return right(*args, **more)

    monkeypatch.setattr(owner, name, counting)
    return calls


@pytest.mark.parametrize("words", [["show"], ["show", "--json"]])
def test_each_line_is_parsed_once(large: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    parsed = counted(monkeypatch, packed, "_sum")
    done = CliRunner().invoke(app, [*words, str(large)])
    assert done.exit_code == 0 and parsed == [N]


def test_the_importance_is_what_it_says() -> None:
    groups = [[1.0, 2.0, 3.5], [2.0, 2.5], [7.0, 8.0, 6.0, 6.5]]
    every = [x for group in groups for x in group]
    within = sum((x - statistics.fmean(group)) ** 2 for group in groups for x in group)
    total = sum((x - statistics.fmean(every)) ** 2 for x in every)
    n, k = len(every), len(groups)
    assert importance.epsilon_squared(groups) == pytest.approx(1 - (within / (n - k)) / (total / (n - 1)))


def test_equal_texts_of_a_record_are_held_once(large: Path) -> None:
    first, second, *_ = SweepFolder(large).trials()
    assert first.compiler is second.compiler and first.conditions is second.conditions
    assert first.grid is second.grid and first.at is second.at
    assert all(a is b for a, b in zip(first.config, second.config, strict=True))


def test_a_page_of_many_trials_draws_a_sample_and_says_so(large: Path) -> None:
    sweep = SweepRecord.of(SweepFolder(large))
    blocks = one.sweep_blocks(sweep)
    assert len(json.dumps(figures(blocks))) < 2_000_000
    (search,) = (b for b in blocks if isinstance(b, Picture) and b.title.startswith("Time of every config, in"))
    dots, best, failed = search.figure["data"]
    assert len(dots["x"]) == MOST_DOTS and dots["x"] == sorted(set(dots["x"]))
    assert min(dots["y"]) == min(best["y"]) and len(best["x"]) < 100 and best["x"][-1] == N
    assert len(failed["x"]) == N // 5
    assert re.search(r"Of 4000 configs, 3000 are drawn: the 750 fastest, and others spaced evenly\.", search.reading)


def test_a_sample_keeps_the_order_both_ends_and_what_comes_first() -> None:
    found = sampled(range(10_000), 100, n_first=20)
    assert found == sorted(set(found)) and len(found) == 100
    assert found[:20] == list(range(20)) and found[-1] == 9_999
    assert sampled([3, 1], 100) == [3, 1] and sampling_text(2) == ""


def test_a_line_without_an_end_is_left_out_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trials, "MOST_LINE", 4096)
    monkeypatch.setattr(trials, "PIECE", 100)
    path = tmp_path / trials.TRIALS
    with path.open("wb") as file:
        file.write(b'{"torn": 1}\n')
        file.truncate(50_000)  # sparse: nothing but zeros
    damaged: dict[int, str] = {}
    assert list(trials.read_log(tmp_path, damaged)) == []
    trials.tell_damaged(path, damaged)
    assert "longer than 4096 bytes; the rest of the file is ignored" in caplog.text.replace("\n", " ") or (
        "and 1 more, such as line 2" in caplog.text
    )
    trials.mend_last_line(tmp_path)
    assert path.read_bytes() == b'{"torn": 1}\n'
