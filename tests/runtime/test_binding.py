"""One binding of a call: numbers have their defaults, derived arguments stay, and mistakes are named, at every door."""

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from autotune.kernels.ddc import Ddc

import autotune
from autotune import UsageError
from autotune.core.errors import DefinitionError
from autotune.devices import find_device
from autotune.engines.machine.host_backend import HostBackend
from autotune.runtime.binding import Binding
from autotune.source.registry import load_kernel
from autotune.trial.case import CaseInMemory

from ..fake_gpu import FakeGpu, array
from ..kernels.common import session_on
from ..recorded import INTEGRATE
from .test_launcher import folder, gpu, integrate_inputs, tuned

__all__ = ["folder", "gpu", "tuned"]  # fixtures
N_SAMPLES = 37


def prepared_inputs() -> dict[str, Any]:
    outputs = {"smoothed": np.zeros((3, N_SAMPLES), np.float32), "positive": np.zeros((3, N_SAMPLES), np.uint8)}
    return integrate_inputs(N_SAMPLES) | {name: array(output) for name, output in outputs.items()}


def integrate_copy(folder: Path, old: str, new: str) -> str:
    """The path of a definition like integrate.py in which ``old`` is ``new``."""
    source = Path(INTEGRATE)
    shutil.copy(source.with_name("integrate.cu.j2"), folder)
    text = source.read_text()
    assert text.count(old) == 1
    (folder / "integrate.py").write_text(text.replace(old, new))
    return str(folder / "integrate.py")


def test_a_prepared_kernel_gives_numbers_their_defaults(tuned: ModuleType, gpu: FakeGpu) -> None:
    integrate = tuned.integrate(n_rows=3).prepare(n_samples=N_SAMPLES)
    for more, offset in (({}, 0.0), ({"offset": 3.0}, 3.0), ({}, 0.0)):
        integrate(**prepared_inputs(), **more)
        assert [gpu.last.arguments[i].item() for i in (1, 4, 6)] == [2.0, offset, N_SAMPLES]


def test_a_prepared_kernel_names_what_it_does_not_take_and_what_it_lacks(tuned: ModuleType, gpu: FakeGpu) -> None:
    integrate = tuned.integrate(n_rows=3).prepare(n_samples=N_SAMPLES)
    with pytest.raises(TypeError, match=r"integrate takes .*offset.*, not ofset"):
        integrate(**prepared_inputs(), ofset=3.0)
    without = prepared_inputs()
    del without["gain"]
    with pytest.raises(TypeError, match=r"integrate: gain is missing; it is a number"):
        integrate(**without)
    assert not gpu.launched


def test_an_engine_s_launcher_gives_numbers_their_defaults() -> None:
    backend, kernel = HostBackend(), load_kernel("ddc")
    problem = kernel.problem({"taps": 5, "decimation": 3, "sample_bits": 8, "n_samples": 64})
    config = kernel.default_config(problem, backend.device)
    inputs = kernel.inputs(problem, np.random.default_rng(4))
    output = backend.empty(kernel.arrays(problem)["baseband"].shape, np.complex64)
    arrays = {name: inputs[name] for name in ("samples", "weights")} | {"baseband": output}
    backend.launcher(kernel, problem, config)(problem, arrays, {"mix_frequency": 0.1}, backend.stream())
    assert isinstance(kernel, Ddc)
    wanted = kernel.reference(problem, **inputs | {"mix_frequency": 0.1, "mix_phase": 0.0})["baseband"]
    np.testing.assert_allclose(output, wanted, atol=1e-3)


def test_arguments_that_scalars_does_not_return_are_derived(tmp_path: Path) -> None:
    path = integrate_copy(tmp_path, '            "n_samples": np.int32(problem.n_samples),\n', "")
    kernel = load_kernel(path)
    binding = Binding.of(kernel, kernel.problem({"n_samples": N_SAMPLES}))
    scalars = binding.scalars({"gain": 2.0})
    assert {name: (type(value), value) for name, value in scalars.items()} == {
        "gain": (np.float32, 2.0),
        "offset": (np.float64, 0.0),
        "n_samples": (np.int32, N_SAMPLES),
    }
    inputs = kernel.inputs(binding.problem, np.random.default_rng(5))
    given = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in inputs.items()}
    outputs = autotune.run(path, inputs=given, device="host")
    wanted = kernel.reference(binding.problem, **inputs)
    np.testing.assert_allclose(outputs["smoothed"], wanted["smoothed"], rtol=1e-5, atol=1e-5)


def test_run_names_numbers_that_are_missing_or_unknown() -> None:
    arrays = {name: np.zeros((3, N_SAMPLES), np.float32) for name in ("samples", "sums")}
    with pytest.raises(UsageError, match=r"integrate: gain is missing; it is a number"):
        autotune.run(INTEGRATE, inputs=arrays, device="host")
    with pytest.raises(UsageError, match=r"integrate takes samples, sums, gain, offset, not ofset"):
        autotune.run(INTEGRATE, inputs=arrays | {"gain": 2.0, "ofset": 1.0}, device="host")


def test_a_definition_that_reads_what_it_does_not_make_is_at_fault(tmp_path: Path) -> None:
    path = integrate_copy(tmp_path, '            "gain": float(rng.uniform(1, 2)),\n', "")
    kernel = load_kernel(path)
    problem = kernel.problem({"n_samples": 1})
    inputs = kernel.inputs(problem, np.random.default_rng(0))
    with pytest.raises(DefinitionError, match=r"reads what inputs\(\) does not make: integrate: gain is missing"):
        CaseInMemory(session_on(find_device("host")), kernel, problem, inputs)
