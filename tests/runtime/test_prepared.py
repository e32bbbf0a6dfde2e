"""A prepared kernel: sizes of each call, arrays that are parts of others, and nothing but a launch at a call."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from autotune.kernels.pfb_fir import PfbFir
from autotune.kernels.postproc import Postproc

from autotune import Array
from autotune.core.definition import array_in
from autotune.runtime.arrays import whole_lengths
from autotune.runtime.signature import ArgumentValueError

from ..fake_gpu import FakeGpu, array
from ..recorded import WIDE
from .test_launcher import folder, gpu, tuned, voltage

__all__ = ["folder", "gpu", "tuned"]  # fixtures
DATA, POWER = np.zeros((100, 1000), np.complex64), array(np.zeros(1000, np.float32))


def test_a_call_has_sizes_of_its_own_and_only_launches(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect = tuned.detect(n_time=100).prepare(n_chan=1000)
    assert detect.config == WIDE and len(gpu.loaded) == 1 and not gpu.launched
    data, power = voltage(1000), array(np.zeros(1000, np.float32))
    detect(voltage=data, power=power)
    assert gpu.last.arguments[0] is power and gpu.last.arguments[1] is data
    assert (gpu.last.grid, gpu.last.arguments[2].item()) == ((8, 1, 1), 1000)
    detect(voltage=voltage(130), power=array(np.zeros(130, np.float32)), sizes={"n_chan": 130})
    assert (gpu.last.grid, gpu.last.arguments[2].item()) == ((2, 1, 1), 130)
    assert detect.config == WIDE and len(gpu.loaded) == 1, "90 000 channels would have another config"
    detect(voltage=voltage(90_000), power=array(np.zeros(90_000, np.float32)), sizes={"n_chan": 90_000})
    assert gpu.last.block == (WIDE.BLOCK_C, WIDE.BLOCK_T, 1)


def test_arrays_of_a_call_are_checked(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect = tuned.detect(n_time=100).prepare(n_chan=1000)
    wrong: dict[str, dict[str, Any]] = {
        "detect: power is missing; it must be float32": {"voltage": voltage(1000)},
        r"power is float32 \[7\]; it must be float32 \[1000\]": {
            "voltage": voltage(1000), "power": array(np.zeros(7, np.float32))
        },
        r"voltage must be C-contiguous; its strides are \(16000, 16": {
            "voltage": voltage(2000)[:, ::2], "power": array(np.zeros(1000, np.float32))
        },
        "voltage starts at address 0x[0-9a-f]+, which is not a multiple of 16 bytes": {
            "voltage": array(DATA, shift=8), "power": POWER
        },
        "power starts at address 0x[0-9a-f]+, which is not a multiple of 16 bytes": {
            "voltage": voltage(1000), "power": array(np.zeros(1000, np.float32), shift=4)
        },
        "voltage is on GPU 1, and it was prepared for GPU 0": {"voltage": array(DATA, index=1), "power": POWER},
        "power is on GPU 1, and it was prepared for GPU 0": {
            "voltage": voltage(1000), "power": array(np.zeros(1000, np.float32), index=1)
        },
        r"voltage is a NumPy array, on the CPU; use cupy.asarray\(voltage\)": {"voltage": DATA, "power": POWER},
        "voltage is complex128": {"voltage": array(DATA.astype(np.complex128)), "power": POWER},
        "voltage is missing; it must be an array on the GPU": {"voltage": None, "power": POWER},
        "n_chan=1000.5 is of type float, must be a whole number": {
            "voltage": voltage(1000), "power": POWER, "sizes": {"n_chan": 1000.5}
        },
    }  # fmt: skip
    kinds = (ValueError, TypeError, sys.modules[f"{tuned.__name__}._autotune.core.errors"].UsageError)
    for message, given in wrong.items():
        with pytest.raises(kinds, match=message):
            detect(**given)
    assert not gpu.launched
    detect(voltage=voltage(1000), power=POWER)  # after a right call, too: an address can be another array's now
    for message, given in wrong.items():
        with pytest.raises(kinds, match=message):
            detect(**given)
    assert len(gpu.launched) == 1


@pytest.mark.parametrize(
    ("shape", "whole", "some", "length"),
    [
        ((2, 5, 3), (2, 9, 3), np.s_[:, 2:7], 9),
        ((2, 5, 3), (2, 5, 3), np.s_[:], 5),
        ((1, 5, 3), (1, 9, 3), np.s_[:, 2:7], 0),
        ((2, 5, 3), (2, 5, 6), np.s_[..., :3], None),
        ((2, 5, 3), (4, 5, 3), np.s_[::2], 10),
    ],
)
def test_the_length_of_the_whole_is_read_from_strides(
    shape: tuple[int, ...], whole: tuple[int, ...], some: Any, length: int | None
) -> None:
    part = np.zeros(whole, np.float32)[some]
    spec = array_in(np.float32, *shape, longer=(1, "n"))
    assert part.shape == shape
    assert spec.whole_length(part.strides) == length
    plain = array_in(np.float32, *shape)
    assert plain.whole_length(part.strides) == (0 if part.flags.c_contiguous or length == 0 else None)


def test_parts_that_share_a_length_must_agree() -> None:
    kernel = Postproc()
    problem = kernel.problem({"n_channels": 40, "n_heaps": 2, "spectra_per_heap": 16})
    specs: dict[str, Array] = kernel.arrays(problem)
    arrays = {name: np.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
    assert whole_lengths("postproc", specs, arrays) == {"n_spectra": 32}
    arrays["spectra"] = np.zeros((1, 2, 80, 41), np.complex64)[:, :, 16:48]
    assert whole_lengths("postproc", specs, arrays) == {"n_spectra": 80}
    two = kernel.problem({"n_receivers": 2}, base=problem)
    specs = kernel.arrays(two)
    arrays = {name: np.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
    arrays["delays"] = np.zeros((2, 90, 2), np.float32)[:, :32]
    with pytest.raises(ArgumentValueError, match="that share n_spectra with it are parts of"):
        whole_lengths("postproc", specs, arrays)


def test_pfb_fir_appends_to_a_longer_array() -> None:
    kernel = PfbFir()
    problem = kernel.problem({"n_channels": 8, "taps": 2, "n_spectra": 3, "n_samples": 100})
    specs = kernel.arrays(problem)
    arrays = {name: np.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
    arrays["filtered"] = np.zeros((2, 11, 16), np.float32)[:, 4:7]
    assert whole_lengths("pfb_fir", specs, arrays) == {"filtered_spectra": 11}
