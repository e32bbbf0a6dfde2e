"""The number of slices: the one whose dumps are expected to take least; visibilities are the same for all."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Device
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.x import slices
from autotune.engines.x.slices import slices_of
from autotune.engines.x.x_settings import XSettings, accumulate_fields, correlate_fields
from autotune.source.registry import load_kernel

from ...recorded import A100, H200, HOST, record
from .test_stage import BATCH, HEAP, PER_DUMP, C, dumps_of

SETTINGS = XSettings(16, 64, 256, 1 << 15, accumulate=64, batches_per_chunk=32)


class Elsewhere(HostBackend):
    """A device that is not here."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device


def planted(results: Path, name: str, fields: Mapping[str, Any], median_us: float) -> None:
    kernel = load_kernel(name)
    problem = kernel.problem_type(**fields)
    default = kernel.default_config(problem, H200)
    record(results, H200, {default: median_us}, problem=asdict(problem), default=default, definition=name)


def records(results: Path, correlate_us: Mapping[int, float], accumulate_us: Mapping[int, float]) -> Path:
    """Sweeps of both kernels with those numbers of slices."""
    for n in correlate_us:
        planted(results, "correlate", correlate_fields(SETTINGS, n), correlate_us[n])
        planted(results, "accumulate", accumulate_fields(SETTINGS, n), accumulate_us[n])
    return results


def chosen(settings: XSettings, results: Path | None, device: Device = H200) -> tuple[int, str]:
    """The number of slices, and what is told of it."""
    told: list[str] = []
    kernels = Kernels(Elsewhere(device), told.append, results=results)
    n = slices_of(settings, kernels, device.kind)
    assert slices_of(settings, kernels, device.kind) == n and len(told) == 1, "it is told once"
    return n, told[0]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Slices make correlate faster up to 8, and each costs a dump more."""
    correlate = {1: 72.0, 2: 40.0, 4: 28.0, 8: 23.0, 16: 26.0, 32: 36.0}
    return records(tmp_path / "results", correlate, {n: 2.0 + n for n in correlate})


def test_the_least_time_of_a_dump_is_chosen(results: Path) -> None:
    n, line = chosen(SETTINGS, results)  # two chunks a dump
    assert (n, line) == (
        8,
        "slices of 16 antennas: 8; a dump takes 56 us (measured here), 147 us with 1 (measured here)",
    )
    n, line = chosen(replace(SETTINGS, accumulate=32), results)
    assert n == 8 and line.endswith("8; a dump takes 33 us (measured here), 75 us with 1 (measured here)")


def test_what_a_dump_adds_up_counts_as_often_as_there_are_dumps(tmp_path: Path) -> None:
    correlate, accumulate = {1: 30.0, 2: 24.0, 4: 20.0, 8: 19.0}, {1: 5.0, 2: 8.0, 4: 20.0, 8: 60.0}
    seldom, often = records(tmp_path / "results", correlate, accumulate), replace(SETTINGS, accumulate=32)
    assert chosen(often, seldom)[0] == 2
    assert chosen(replace(SETTINGS, accumulate=320), seldom)[0] == 4
    assert chosen(replace(SETTINGS, accumulate=1 << 14), seldom)[0] == 8


def test_one_is_chosen_where_more_gain_nothing(tmp_path: Path) -> None:
    times = {1: 10.0, 2: 11.0, 4: 12.0}
    n, line = chosen(SETTINGS, records(tmp_path / "results", times, {1: 1.0, 2: 2.0, 4: 3.0}))
    assert n == 1 and line.startswith("slices of 16 antennas: 1; a dump takes 21 us (measured here), 24 us with 2, 27")


def test_other_antennas_are_foretold(results: Path) -> None:
    n, line = chosen(replace(SETTINGS, n_antennas=20), results)
    assert n in (4, 8, 16) and "(predicted)" in line


def test_what_bounds_the_number(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(replace(SETTINGS, batches_per_chunk=1), results)[0] == 1, "a batch is not cut"
    assert chosen(replace(SETTINGS, accumulate=4), results)[0] <= 4
    monkeypatch.setattr(slices, "MOST_BYTES", 4 * SETTINGS.slice_bytes)
    assert chosen(SETTINGS, results)[0] == 4
    monkeypatch.setattr(slices, "MOST_BYTES", 1)
    assert chosen(SETTINGS, results)[0] == 1, "one slice is always there"


def test_where_no_time_decides(results: Path) -> None:
    assert chosen(replace(SETTINGS, n_slices=3), results) == (3, "slices of 16 antennas: 3; as asked for")
    unknown = (1, "slices of 16 antennas: 1; no time of correlate and accumulate is known here")
    assert chosen(SETTINGS, None) == unknown == chosen(SETTINGS, results, A100)
    assert chosen(SETTINGS, results, HOST) == (1, "slices of 16 antennas: 1; as always on host")


@pytest.mark.parametrize("bits", [4, 8])
def test_visibilities_are_the_same_whatever_the_slices(bits: int) -> None:
    rng = np.random.default_rng(bits)
    n_batches, n_antennas = 11, 3
    shape = (n_batches, n_antennas, C, HEAP, 2, *([2] if bits == 8 else []))
    v, present = rng.integers(-127, 128, shape, dtype=np.int8), np.ones((n_batches, n_antennas), bool)
    present[7, 1] = False
    settings = XSettings(n_antennas, C, HEAP, BATCH, PER_DUMP, n_batches, bits)
    found = [
        dumps_of(v, present, 0, [6, 5], replace(settings, n_slices=n_slices), by_kernels=True)
        for n_slices in (None, 1, 2, 3, 8, 32)
    ]
    for dumps in found[1:]:
        assert dumps.keys() == found[0].keys() and len(dumps) == 2
        for time, parts in dumps.items():
            assert all(np.array_equal(one, other) for one, other in zip(parts, found[0][time], strict=True))
    assert found[0][0][0].any()
