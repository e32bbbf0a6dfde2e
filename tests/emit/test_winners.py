"""Which recorded trial wins, and which sweeps have no winner."""

import json
import logging
from pathlib import Path

import pytest

from autotune import UsageError
from autotune.devices.cuda import of_architecture
from autotune.emit.winners import gather, valid
from autotune.emit.writer import write_package
from autotune.runtime.lookup import DEFAULT as DEFAULT_TIER
from autotune.runtime.lookup import choose
from autotune.runtime.wisdom import Wisdom
from autotune.source.registry import load_kernel

from ..recorded import DEFAULT, H100, H200, INTEGRATE, KERNELS, TALL, WIDE, record, unsealed
from .conftest import MEDIANS

RESULTS = Path(__file__).parents[2] / "results"


def test_verdict_counts_before_the_search(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS)
    verdict = unsealed((path / "verdict.json").read_text())
    trials = [unsealed(line) for line in (path / "trials.jsonl").read_text().splitlines()]
    (path / "verdict.json").write_text(json.dumps({**verdict, "winner": {**trials[2], "median_s": 19e-6}}))
    wisdom, *_ = gather(valid([tmp_path], kernels=KERNELS))
    assert wisdom.entries[0].config == TALL
    assert wisdom.entries[0].evidence.median_s == 19e-6


def test_without_verdict_the_fastest_measured_counts(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS, verdict=False)
    wrong = unsealed((path / "trials.jsonl").read_text().splitlines()[0])
    with open(path / "trials.jsonl", "a") as file:
        file.write(json.dumps({**wrong, "status": "wrong", "median_s": 1e-9, "config": {"BLOCK_C": 32}}) + "\n")
        file.write('{"number": 9, "status": "measured", "median_s": 1e-9, "conf')  # a kill in mid-line
    wisdom, *_ = gather(valid([tmp_path], kernels=KERNELS))
    assert wisdom.entries[0].config == WIDE
    assert wisdom.entries[0].evidence.speed_up == pytest.approx(1.5)


def test_a_configs_last_trial_counts(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS, verdict=False)
    fastest = unsealed((path / "trials.jsonl").read_text().splitlines()[1])
    with open(path / "trials.jsonl", "a") as file:
        file.write(json.dumps({**fastest, "status": "wrong", "median_s": None, "stamp": "newer"}) + "\n")
    assert gather(valid([tmp_path], kernels=KERNELS))[0].entries[0].config == TALL


def test_newer_of_two_records_of_one_thing(tmp_path: Path) -> None:
    record(tmp_path / "a", H200, {DEFAULT: 30.0, TALL: 1.0}, started="2026-01-01T00:00:00+00:00")
    record(tmp_path / "b", H200, {DEFAULT: 30.0, WIDE: 9.0}, started="2026-02-01T00:00:00+00:00")
    entries = gather(valid([tmp_path], kernels=KERNELS))[0].entries
    assert [e.config for e in entries] == [WIDE]


def test_a_changed_template_makes_a_winner_stale(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record(tmp_path, H200, MEDIANS, key="000000000000")
    with pytest.raises(UsageError, match=r"has changed since.*Sweep again: autotune sweep --kernel .*detect"):
        write_package([tmp_path], tmp_path / "tuned", kernels=KERNELS)
    record(tmp_path, H100, MEDIANS)
    with caplog.at_level(logging.WARNING):
        write_package([tmp_path], tmp_path / "tuned", kernels=KERNELS)
    assert "NVIDIA_H200" in caplog.text and "has changed since" in caplog.text
    assert [e.device.name for e in Wisdom.load(tmp_path / "tuned" / "wisdom.json").entries] == ["NVIDIA H100 PCIe"]


def test_where_the_recorded_default_is_too_large_for_some_gpus_the_package_has_one_for_all() -> None:
    (folder,) = (RESULTS / "NVIDIA_H200" / "channelise").glob("taps=32,n_channels=1024,*")
    wisdom, sources, *_ = gather(valid([folder]))
    (of_any,) = wisdom.fallbacks  # the recorded one has 137 KiB of shared memory
    kernel, entry = load_kernel("channelise"), wisdom.entries[0]
    assert of_any.source_key in sources
    for arch in ("sm_80", "sm_86"):
        choice = choose(wisdom, kernel, entry.baked, entry.runtime, of_architecture(arch))
        assert (choice.tier, choice.config) == (DEFAULT_TIER, of_any.config)


def test_a_kernel_of_which_all_is_stale_has_no_function(tmp_path: Path) -> None:
    record(tmp_path / "results", H200, MEDIANS, key="000000000000")
    problem = load_kernel(INTEGRATE).tuned[0]
    config = load_kernel(INTEGRATE).default_config(problem, H200)
    record(tmp_path / "results", H200, {config: 1.0}, problem={}, default=config, definition=INTEGRATE)
    package = write_package([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)
    assert "def detect(" not in (package / "__init__.py").read_text()
    assert [p.name for p in (package / "kernels").glob("[!_]*.py")] == ["integrate.py"]


def test_sweep_without_a_correct_variant_is_left_out(tmp_path: Path) -> None:
    record(tmp_path, H200, MEDIANS, verdict=False, status="wrong", median_s=None)
    with pytest.raises(UsageError, match="none of its 3 configurations was measured"):
        write_package([tmp_path], tmp_path / "tuned", kernels=KERNELS)


def test_damaged_record_is_told(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS)
    (path / "sweep.json").write_text('{"kernel": "det')
    with pytest.raises(UsageError, match="damaged"):
        write_package([tmp_path], tmp_path / "tuned", kernels=KERNELS)


def test_nothing_recorded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recorded sweep"):
        write_package([tmp_path], tmp_path / "tuned", kernels=KERNELS)
