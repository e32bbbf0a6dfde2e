"""What is taken over from recorded neighbours: from whom, in which order, and never what cannot run here."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune import Device
from autotune.recommend.distance import SAME_DEVICE
from autotune.recommend.experience import MeasuredProblem
from autotune.search import warm_start
from autotune.search.warm_start import N_READ, known
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import A100, DEFAULT, H100, H200, HOST, WIDE, record

pytestmark = pytest.mark.quick

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 128, "n_chan": 4096})
SPACE = KERNEL.space.enumerate(PROBLEM, H200)


def sizes(found: tuple[MeasuredProblem, ...]) -> list[tuple[str, int, int]]:
    return [(n.device.name, n.problem["n_time"], n.problem["n_chan"]) for n in found]


# ---------------------------------------------------------------------- who is a neighbour
def test_nearest_first_by_octaves_of_every_field(tmp_path: Path) -> None:
    for n_time, n_chan in ((128, 65536), (512, 4096), (64, 4096), (128, 4000)):
        record(tmp_path, H200, {WIDE: 2.0, DEFAULT: 3.0}, n_time=n_time, n_chan=n_chan)
    found = known(tmp_path, KERNEL, PROBLEM, H200)
    assert [(n.problem["n_time"], n.problem["n_chan"]) for n in found] == [
        (128, 4000), (64, 4096), (512, 4096), (128, 65536)
    ]  # fmt: skip
    assert found[0].measured == ((WIDE, 1.0), (DEFAULT, pytest.approx(1.5)))


def test_same_device_before_same_architecture_before_others(tmp_path: Path) -> None:
    for device in (A100, H100, H200):
        record(tmp_path, device, {WIDE: 2.0}, n_time=128, n_chan=8192)
    for device in (A100, H100):  # nearer in size, this very problem, but elsewhere
        record(tmp_path, device, {WIDE: 2.0}, n_time=128, n_chan=4096)
    found = known(tmp_path, KERNEL, PROBLEM, H200)
    assert sizes(found) == [
        ("NVIDIA H200", 128, 8192),
        ("NVIDIA H100 PCIe", 128, 4096),
        ("NVIDIA H100 PCIe", 128, 8192),
        ("NVIDIA A100", 128, 4096),
        ("NVIDIA A100", 128, 8192),
    ]


def test_this_very_problem_on_this_device_is_no_neighbour(tmp_path: Path) -> None:
    record(tmp_path, H200, {WIDE: 2.0}, n_time=128, n_chan=4096)
    assert known(tmp_path, KERNEL, PROBLEM, H200) == ()


SIMULATED = replace(H200, name="simulated H200", kind="simulated")


@pytest.mark.parametrize("device", [H200, HOST, SIMULATED])
def test_kinds_of_devices_are_never_mixed(tmp_path: Path, device: Device) -> None:
    for other in (H200, HOST, SIMULATED):
        record(tmp_path, other, {WIDE: 2.0}, n_chan=64)
    assert [n.device for n in known(tmp_path, KERNEL, PROBLEM, device)] == [device]


def test_only_so_many_are_read_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    medians = warm_start.medians
    monkeypatch.setattr(warm_start, "medians", lambda trials: read.append(trials) or medians(trials))
    for i in range(N_READ[SAME_DEVICE] + 3):
        record(tmp_path, H200, {WIDE: 2.0}, n_time=128, n_chan=4096 << i + 1)
    for _ in range(2):
        found = known(tmp_path, KERNEL, PROBLEM, H200)
        assert [n.problem["n_chan"] for n in found] == [4096 << i + 1 for i in range(N_READ[SAME_DEVICE])]
        assert len(read) == N_READ[SAME_DEVICE]


def test_what_is_damaged_or_empty_is_passed_over(tmp_path: Path) -> None:
    record(tmp_path, H200, {WIDE: 2.0}, n_chan=16)
    record(tmp_path, H200, {WIDE: 2.0}, n_chan=4096, status="wrong", median_s=None)
    damaged = record(tmp_path, H200, {WIDE: 2.0}, n_chan=4097)
    (damaged / "sweep.json").write_text('{"problem": ')
    torn = record(tmp_path, H200, {WIDE: 2.0}, n_chan=4098)
    (torn / "trials.jsonl").write_bytes(b'{"number": 0, "sta')
    (tmp_path / "NVIDIA_H200" / "detect" / "notes.txt").write_text("mine")
    (tmp_path / "README").write_text("mine")
    assert sizes(known(tmp_path, KERNEL, PROBLEM, H200)) == [("NVIDIA H200", 100, 16)]
    assert known(tmp_path / "nowhere", KERNEL, PROBLEM, H200) == ()


def test_a_sweep_that_goes_on_is_read_again(tmp_path: Path) -> None:
    path = record(tmp_path, H200, {DEFAULT: 2.0})
    assert [c for c, _ in known(tmp_path, KERNEL, PROBLEM, H200)[0].measured] == [DEFAULT]
    line = (path / "trials.jsonl").read_bytes()
    record(tmp_path / "other", H200, {WIDE: 1.0})
    with open(path / "trials.jsonl", "ab") as file:
        file.write((tmp_path / "other" / path.relative_to(tmp_path) / "trials.jsonl").read_bytes())
    os.utime(path / "trials.jsonl")
    assert (path / "trials.jsonl").stat().st_size > len(line)
    (neighbour,) = known(tmp_path, KERNEL, PROBLEM, H200)
    assert neighbour.measured == ((WIDE, 1.0), (DEFAULT, pytest.approx(2.0)))
