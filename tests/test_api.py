"""The Python interface: one launch, a whole sweep, and the errors of a first day."""

from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune.devices import Target

from .conftest import EXAMPLE


def voltage(n_time: int, n_chan: int) -> np.ndarray:
    parts = np.random.default_rng(0).normal(size=(n_time, 2 * n_chan)).astype(np.float32)
    return parts.view(np.complex64)


def test_kernels_are_called_and_imported_by_the_same_name() -> None:
    import autotune.kernels.ddc as module

    assert type(autotune.kernels()["ddc"]) is module.Ddc


@pytest.mark.parametrize("n_chan", [1, 33, 130])
def test_run_takes_the_sizes_from_the_inputs(target: Target, n_chan: int) -> None:
    x = voltage(100, n_chan)
    outputs = autotune.run(EXAMPLE, problem={"n_time": 100}, inputs={"voltage": x}, device=target.identifier)
    np.testing.assert_allclose(outputs["power"], np.sum(np.abs(x.astype(complex)) ** 2, axis=0), rtol=1e-5)


@pytest.mark.quick
def test_run_ddc_with_a_config_and_defaults_for_numbers(target: Target) -> None:
    """Against plain sums: 8-bit samples are bytes."""
    rng = np.random.default_rng(1)
    x, w = rng.integers(-128, 128, (2, 64)).astype(np.int8), rng.normal(size=5).astype(np.float32)
    inputs = {"samples": x.view(np.uint8), "weights": w, "mix_frequency": 0.1}
    problem = {"taps": 5, "decimation": 3, "sample_bits": 8}
    got = autotune.run("ddc", problem=problem, inputs=inputs, device=target.identifier)["baseband"]
    mixed = x * np.exp(2j * np.pi * 0.1 * np.arange(64))
    want = [[np.dot(w, row[3 * j : 3 * j + 5]) for j in range(20)] for row in mixed]
    np.testing.assert_allclose(got, want, atol=1e-3)


@pytest.mark.parametrize(
    ("problem", "inputs", "says"),
    [
        ({}, {}, "needs the input voltage"),
        ({}, {"voltage": np.zeros((1024, 3), np.complex128)}, "voltage is complex128 [1024, 3], must be complex64"),
        ({}, {"voltage": np.zeros((1000, 3), np.complex64)}, "must be complex64 [1024, 3]"),
        ({"n_chan": 4}, {"voltage": np.zeros((1024, 3), np.complex64)}, "must be complex64 [1024, 4]"),
        ({"n_times": 4}, {"voltage": np.zeros((1024, 3), np.complex64)}, "'n_times' is not a field"),
    ],
)
def test_run_says_what_is_wrong(problem: dict[str, int], inputs: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(autotune.UsageError) as error:
        autotune.run(EXAMPLE, problem=problem, inputs=inputs, device="host")
    assert says in str(error.value)


def test_arguments_of_another_type_end_in_one_line(tmp_path: Path) -> None:
    for call, says in (
        (lambda: autotune.load(3), "path=3 must be a path"),  # type: ignore[arg-type]
        (lambda: autotune.sweep(EXAMPLE, device="host", results=tmp_path, progress=3), "progress=3 must be an object"),
    ):
        with pytest.raises(autotune.UsageError, match=says):
            call()


@pytest.mark.quick
def test_sweep_gives_best_trials_and_path(tmp_path: Path) -> None:
    done = autotune.sweep(EXAMPLE, device="host", trials=4, results=tmp_path, sampler="random", seed=3)
    assert done.best is not None and done.speed_up is not None and done.speed_up >= 1.0
    assert len(done.trials) == 4 and done.path.is_relative_to(tmp_path)
    assert autotune.load(tmp_path)["status"].eq("measured").all()
    with pytest.raises(autotune.UsageError, match=r"settings are .*trials"):
        autotune.sweep(EXAMPLE, device="host", trial=4)
