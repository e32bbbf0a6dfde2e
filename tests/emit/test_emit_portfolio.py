"""What a package of a portfolio instead of the winners answers, and loses."""

import json
import logging
from pathlib import Path

import pytest

from autotune import Config
from autotune.emit.winners import gather, valid
from autotune.emit.writer import write_package
from autotune.runtime.lookup import report_choice
from autotune.runtime.wisdom import Entry, Wisdom

from ..recorded import DEFAULT, H100, H200, KERNELS, TALL, WIDE, record, unsealed

pytestmark = pytest.mark.quick


# ---------------------------------------------------------------------- a portfolio instead of the winners
@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    """Three sizes with three winners; TALL is never far from the best, WIDE is at the large one."""
    record(tmp_path, H200, {DEFAULT: 30.0, WIDE: 20.0, TALL: 20.4}, n_chan=1024)
    record(tmp_path, H200, {DEFAULT: 30.0, WIDE: 25.0, TALL: 24.0}, n_chan=4096)
    record(tmp_path, H200, {DEFAULT: 20.0, WIDE: 40.0, TALL: 21.0}, n_chan=16384)
    return tmp_path


def of_size(wisdom: Wisdom) -> dict[int, Entry]:
    return {entry.runtime["n_chan"]: entry for entry in wisdom.entries}


def test_portfolio_of_one_serves_all_and_states_its_regret(uneven: Path) -> None:
    wisdom, sources, *_ = gather(valid([uneven], kernels=KERNELS), 1)
    entries = of_size(wisdom)
    assert {entry.config for entry in entries.values()} == {TALL}
    assert [entries[n].regret for n in (1024, 4096, 16384)] == [0.02, 0.0, 0.05]
    assert len(sources) == 2, "TALL and the default"
    evidence = entries[16384].evidence
    assert evidence.median_s == pytest.approx(21e-6) and evidence.default_median_s == pytest.approx(20e-6)
    assert (evidence.registers, evidence.max_error, evidence.ties) == (32, 1.5e-7, 0)


def test_portfolio_of_two_gives_each_size_its_better_member(uneven: Path) -> None:
    entries = of_size(gather(valid([uneven], kernels=KERNELS), 2)[0])
    assert [(entries[n].config, entries[n].regret) for n in (1024, 4096, 16384)] == [
        (TALL, 0.02), (TALL, 0.0), (DEFAULT, 0.0)
    ]  # fmt: skip
    winners = of_size(gather(valid([uneven], kernels=KERNELS))[0])
    assert [winners[n].config for n in (1024, 4096, 16384)] == [WIDE, TALL, DEFAULT]
    assert {n: e.config for n, e in of_size(gather(valid([uneven], kernels=KERNELS), 9)[0]).items()} == {
        n: e.config for n, e in winners.items()
    }


def test_a_finalists_evidence_is_of_the_final_round(uneven: Path) -> None:
    path = next(p for p in uneven.rglob("n_time=100,n_chan=1024"))
    verdict = unsealed((path / "verdict.json").read_text())
    trials = [unsealed(line) for line in (path / "trials.jsonl").read_text().splitlines()]
    finals = [{**trial, "median_s": 1.01 * trial["median_s"]} for trial in trials]
    (path / "verdict.json").write_text(json.dumps({**verdict, "default": finals[0], "finalists": finals}))
    entry = of_size(gather(valid([uneven], kernels=KERNELS), 1)[0])[1024]
    assert (entry.config, entry.regret) == (TALL, 0.02), "regrets are of the search"
    assert entry.evidence.median_s == pytest.approx(1.01 * 20.4e-6)
    assert entry.evidence.default_median_s == pytest.approx(1.01 * 30e-6)


def test_what_no_member_was_measured_at_is_left_out(uneven: Path, caplog: pytest.LogCaptureFixture) -> None:
    record(uneven, H200, {Config(BLOCK_C=32, BLOCK_T=4, UNROLL=1): 1.0}, n_time=7, n_chan=64)
    record(uneven, H100, {DEFAULT: 2.0, WIDE: 1.0})  # another device has a portfolio of its own
    with caplog.at_level(logging.WARNING):
        wisdom, sources, *_ = gather(valid([uneven], kernels=KERNELS), 1)
    assert {(e.device.name, e.config) for e in wisdom.entries} == {(H200.name, TALL), (H100.name, WIDE)}
    assert "n_time=7,n_chan=64: none of the portfolio's 1 configurations was measured there" in caplog.text
    left = next(f for f in wisdom.fallbacks if f.baked == {"n_time": 7})
    assert left.config == DEFAULT and left.source_key in sources, "its default still serves it"


def test_a_member_that_renders_otherwise_now_is_left_out(uneven: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = next(p for p in uneven.rglob("n_time=100,n_chan=16384"))
    lines = (path / "trials.jsonl").read_text().splitlines()
    tall = unsealed(lines[2])
    (path / "trials.jsonl").write_text("\n".join([*lines[:2], json.dumps({**tall, "key": "000000000000"})]) + "\n")
    with caplog.at_level(logging.WARNING):
        assert sorted(of_size(gather(valid([uneven], kernels=KERNELS), 1)[0])) == [1024, 4096]
    assert "000000000000, which was measured, is now" in caplog.text


def test_an_emitted_portfolio_answers_with_its_regret(uneven: Path, tmp_path: Path) -> None:
    package = write_package([uneven], tmp_path / "out" / "tuned", portfolio=1, kernels=KERNELS)
    answer = report_choice(package, "detect", {"n_time": 100, "n_chan": 16384}, "NVIDIA H200")
    assert (answer["tier"], answer["config"], answer["regret"]) == ("exact", dict(TALL), 0.05)
    assert "expected slowdown: unknown, since only " in answer["text"]  # the sweep is short
    assert "; 5.0 % of it measured, as the fastest is not in the portfolio" in answer["text"]
    assert sorted(p.stem for p in (package / "sources").iterdir()) == sorted(
        {answer["source_key"], Wisdom.load(package / "wisdom.json").fallbacks[0].source_key}
    )
