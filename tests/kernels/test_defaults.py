"""Defaults: allowed at any problem, found without a search, free of spills, and fast where they were measured."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from autotune import Device, Space, UsageError
from autotune.devices import find_device
from autotune.devices.cuda import of_architecture
from autotune.records.record import SweepRecord, read_sweeps
from autotune.runtime.lookup import refusal
from autotune.runtime.named_devices import ANY_GPU
from autotune.source.registry import all_kernels, load_kernel

from .common import first_is_quick

ROOT = Path(__file__).parents[2]
N_DRAWN = 100
H200 = replace(of_architecture("sm_90"), name="NVIDIA H200", n_multiprocessors=132, l2_bytes=50 << 20)
A100 = replace(of_architecture("sm_80"), name="NVIDIA A100", n_multiprocessors=108, l2_bytes=40 << 20)
DEVICES = (A100, H200, ANY_GPU, *map(of_architecture, ("sm_86", "sm_89", "sm_120")))
KERNELS = first_is_quick(sorted(all_kernels()))
# The most that defaults lose on the records, median and worst, and the least number of sweeps that tell. 108 problems
# were drawn over the kernels' whole ranges after the defaults were written.
BOUNDS = {
    "accumulate": (1.06, 1.35, 75),
    "channelise": (1.06, 1.65, 90),
    "correlate": (1.02, 1.50, 150),
    "ddc": (1.07, 1.50, 140),
    "dequantize": (1.03, 1.13, 70),
    "pfb_fir": (1.03, 1.55, 40),
    "postproc": (1.03, 1.30, 75),
}
NOT_RECORDED = {"beamform"}  # kernels whose defaults no record tells of yet


@pytest.fixture(scope="module")
def defaults() -> Any:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module("defaults")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def sweeps() -> list[SweepRecord]:
    return read_sweeps([ROOT / "results"])[0]


@pytest.fixture
def enumerations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The problems that a space was enumerated for and that have a config."""
    counted, enumerate_space = [], Space.enumerate

    def counting(self: Space, problem: Any, device: Device, restrict: Any = None) -> Any:
        found = enumerate_space(self, problem, device, restrict)
        counted.extend([problem] if found.configs else [])
        return found

    monkeypatch.setattr(Space, "enumerate", counting)
    yield counted


def test_every_kernel_is_drawn_and_bounded(defaults: Any) -> None:
    assert set(defaults.KERNELS) == set(BOUNDS) | NOT_RECORDED == set(all_kernels())
    assert not set(BOUNDS) & NOT_RECORDED


def test_kernels_said_to_be_unrecorded_are(sweeps: list[SweepRecord]) -> None:
    assert not NOT_RECORDED & {sweep.kernel for sweep in sweeps}


@pytest.mark.parametrize("name", KERNELS)
def test_defaults_of_drawn_problems_can_be_launched(name: str, defaults: Any, enumerations: list[Any]) -> None:
    kernel, n = load_kernel(name), 0
    for device in (*DEVICES, find_device("host").device):
        for problem in defaults.drawn(kernel, N_DRAWN, 7):
            try:
                config = kernel.default_config(problem, device)
            except UsageError as error:
                assert "no configuration is allowed here" in str(error)
                continue
            n += 1
            assert refusal(kernel, problem, config, device) is None, (device.name, problem, config)
            assert kernel.space.parse(config) == config
            if len(enumerations) == 0:
                assert kernel.default_config(problem, device) == config
    assert n > 0.8 * N_DRAWN * (len(DEVICES) + 1)
    assert len(enumerations) <= 0.05 * n, enumerations


@pytest.mark.parametrize("name", KERNELS)
def test_a_sweep_of_a_drawn_problem_starts_from_the_default(name: str, defaults: Any) -> None:
    kernel = load_kernel(name)
    for problem in defaults.drawn(kernel, 6, 3):
        try:
            default = kernel.default_config(problem, H200)
        except UsageError as error:
            assert "no configuration is allowed here" in str(error)
            continue
        for constraint in kernel.space.constraints:
            assert constraint.holds(problem, default, H200), (constraint.name, problem, default)


@pytest.mark.parametrize("name", KERNELS)
def test_defaults_compile_without_spills(name: str, defaults: Any, capsys: pytest.CaptureFixture[str]) -> None:
    # Draw 5 of ddc compiles for a minute: decimation by 105, where every config of sm_86 spills.
    assert defaults.build(load_kernel(name), 1, 7) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arch", "values"),
    [
        ("channelise", "sm_90", dict(taps=5, n_pols=1, bits=4, spectra_per_heap=50)),  # voltages are stored one by one
        ("pfb_fir", "sm_120", dict(taps=64, n_channels=131, sample_bits=5, n_pols=1, n_spectra=676)),
        ("correlate", "sm_89", dict(bits=16, layout="batches", n_receivers=23, n_times=92, overwrites=True)),
        ("correlate", "sm_90", dict(bits=4, layout="batches", n_receivers=298, n_times=160, n_channels=322)),
    ],
)
def test_defaults_that_registers_are_few_for_spill_nothing(
    name: str, arch: str, values: dict[str, Any], defaults: Any
) -> None:
    kernel, device, needed = load_kernel(name), of_architecture(arch), defaults.Needed([], [], [])
    problem = kernel.problem(values)
    assert list(defaults.faults(kernel, problem, kernel.default_config(problem, device), device, needed)) == []
    assert needed.spilled and max(needed.spilled) == 0


@pytest.mark.parametrize("name", first_is_quick(sorted(BOUNDS)))
def test_defaults_are_fast_where_they_were_measured(name: str, defaults: Any, sweeps: list[SweepRecord]) -> None:
    middle, worst, least = BOUNDS[name]
    told = defaults.losses_of_defaults(load_kernel(name), sweeps).told
    assert len(told) >= least
    assert 1 + defaults.median(told) <= middle and 1 + max(told) <= worst


def test_ddc_starts_from_the_instruction_that_the_problem_and_the_gpu_have() -> None:
    kernel = load_kernel("ddc")

    def mma(device: Device, **values: int) -> object:
        return kernel.default_config(kernel.problem(values), device).get("MMA")

    assert mma(H200, taps=256, decimation=16, sample_bits=10) == "wgmma"
    assert mma(H200, taps=256, decimation=16, sample_bits=8) == "wgmma_int8"
    assert mma(H200, taps=96, decimation=12, sample_bits=14) == "wgmma_int8"
    assert mma(H200, taps=32, decimation=4, sample_bits=10) == "mma_sync"
    assert mma(H200, taps=16, decimation=4, sample_bits=14) is None
    assert mma(A100, taps=256, decimation=16, sample_bits=10) == "mma_sync"
    assert mma(A100, taps=256, decimation=16, sample_bits=14) is None
    assert mma(ANY_GPU, taps=256, decimation=16, sample_bits=10) is None


def test_correlate_starts_from_tiles_that_receivers_fill() -> None:
    kernel = load_kernel("correlate")

    def mma(device: Device, **values: Any) -> object:
        return kernel.default_config(kernel.problem(values), device).MMA

    assert [mma(H200, n_receivers=n) for n in (4, 33, 64, 80, 110, 1000)] == [
        *("mma_sync", "mma_sync", "wgmma", "mma_sync", "wgmma", "wgmma")
    ]
    assert [mma(H200, n_receivers=n, layout="batches") for n in (32, 64, 256)] == ["mma_sync", "wgmma", "wgmma"]
    assert mma(H200, n_receivers=64, n_channels=1) == "mma_sync"  # one block of 132 multiprocessors
    assert mma(A100, n_receivers=1000) == "mma_sync"
