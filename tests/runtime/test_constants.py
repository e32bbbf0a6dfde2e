"""Constant memory and structures in an emitted package: on a GPU that takes notes; with ``-m gpu`` on a real one."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune import Config
from autotune.emit.writer import write_package
from autotune.runtime.gpu import Order
from autotune.source.registry import load_kernel

from ..conftest import DEFINITIONS
from ..fake_gpu import FakeGpu, array, import_package, install
from ..recorded import H200, record

CONVOLVE, SAXPY = str(DEFINITIONS / "convolve.py"), str(DEFINITIONS / "saxpy.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("constants")
    for definition, parameter, problem in (
        (CONVOLVE, "WIDTH", {"n_side": 5, "n_rows": 20, "n_columns": 40}),
        (SAXPY, "WGS", {"n": 1000}),
    ):
        config = Config({parameter: 64})
        record(base / "results", H200, {config: 1.0}, problem=problem, definition=definition, default=config)
    return write_package([base / "results"], base / "tuned", kernels=[CONVOLVE, SAXPY])


@pytest.fixture
def tuned(folder: Path) -> Iterator[ModuleType]:
    package = import_package(folder, "tuned_with_constants")
    yield package
    for loaded in [m for m in sys.modules if m.partition(".")[0] == package.__name__]:
        del sys.modules[loaded]


@pytest.fixture
def gpu(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return install(monkeypatch, tuned, H200)


def given(definition: str, **sizes: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Inputs and outputs of a definition."""
    kernel = load_kernel(definition)
    problem = kernel.problem(sizes)
    inputs = kernel.inputs(problem, np.random.default_rng(len(sizes)))
    return inputs, kernel.reference(problem, **inputs)


def held(gpu: FakeGpu) -> np.ndarray:
    return np.frombuffer(gpu.last.constants["d_filter"], np.float32)[:25].reshape(5, 5)


def test_each_call_fills_constant_memory_before_its_launch(tuned: ModuleType, gpu: FakeGpu) -> None:
    inputs, _ = given(CONVOLVE)
    image, weights, stream = array(inputs["image"]), inputs["d_filter"], SimpleNamespace(ptr=7)
    convolve = tuned.convolve()
    convolved = convolve(image, weights)
    assert convolved.shape == (20, 40)
    assert gpu.last.arguments[0] is convolved and gpu.last.arguments[1] is image and len(gpu.last.arguments) == 3
    np.testing.assert_array_equal(held(gpu), weights)
    convolve(image, d_filter=array(2 * weights), out=convolved, stream=stream)
    np.testing.assert_array_equal(held(gpu), 2 * weights)
    convolve(image=image, d_filter=weights.T, out=convolved)  # not contiguous
    np.testing.assert_array_equal(held(gpu), weights.T)
    assert gpu.copies == [(100, None), (100, stream), (100, None)] and len(gpu.loaded) == 1


def test_a_prepared_kernel_does_so_too(tuned: ModuleType, gpu: FakeGpu) -> None:
    inputs, _ = given(CONVOLVE)
    convolve = tuned.convolve().prepare(n_rows=20, n_columns=40)
    gpu.constant_address(None, "d_filter")
    arrays = {"image": array(inputs["image"]), "convolved": array(np.zeros((20, 40), np.float32))}
    for weights in (inputs["d_filter"], 2 * inputs["d_filter"]):
        for passed in (weights, array(weights)):
            gpu.constants["d_filter"][:] = 0
            convolve(**arrays, d_filter=passed)
            np.testing.assert_array_equal(held(gpu), weights)
            assert len(gpu.last.arguments) == 3 and gpu.copies[-1] == (100, None)
    with pytest.raises(tuned.UsageError, match=r"d_filter is float32 \[4, 4\]; it must be float32 \[5, 5\]"):
        convolve(**arrays, d_filter=np.zeros((4, 4), np.float32))


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        (None, "d_filter is missing"),
        (np.zeros((5, 5)), "d_filter is float64, must be float32; use d_filter.astype"),
        (np.zeros((5, 4), np.float32), r"d_filter has shape \[5, 4\], must have \[5, 5\]"),
        ([1.0], "d_filter is of type list"),
    ],
)
def test_constants_are_checked_as_other_arrays(tuned: ModuleType, gpu: FakeGpu, weights: Any, why: str) -> None:
    with pytest.raises(tuned.UsageError, match=f"convolve.*: {why}"):
        tuned.convolve()(array(given(CONVOLVE)[0]["image"]), weights)
    assert not gpu.launched and not gpu.copies


def test_threads_take_turns(tuned: ModuleType, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    image, convolve = array(given(CONVOLVE)[0]["image"]), tuned.convolve()
    out = [array(np.zeros((20, 40), np.float32)) for _ in range(2)]
    first_copies, second_copies = threading.Event(), threading.Event()

    def copy(*arguments: Any) -> None:
        gpu.copy_to(*arguments)
        if first_copies.is_set():
            second_copies.set()
        else:
            first_copies.set()
            second_copies.wait(0.3)  # in vain: it must not begin before the first has launched

    def call(number: int) -> None:
        convolve(image, np.full((5, 5), number, np.float32), out=out[number])

    monkeypatch.setattr(sys.modules[f"{tuned.__name__}._autotune.runtime.gpu"], "copy_to", copy)
    first = threading.Thread(target=call, args=(0,))
    first.start()
    first_copies.wait()
    call(1)
    first.join()
    for number, launched in enumerate(gpu.launched):
        assert launched.arguments[0] is out[number]
        assert np.all(np.frombuffer(launched.constants["d_filter"], np.float32)[:25] == number)


def test_a_structure_is_passed_as_its_bytes(tuned: ModuleType, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    samples, sums = array(np.ones(9, np.float32)), array(np.ones(9, np.float32))
    saxpy = tuned.saxpy()
    saxpy(samples, sums, 2.0)
    prepared = saxpy.prepare(n=9)
    prepared(samples=samples, sums=sums, scale=2.0, offset=0.0)
    for launched in gpu.launched:
        params = launched.arguments[1]
        assert isinstance(params, np.ndarray) and params.size == 1, "CuPy passes such by value"
        assert (params.nbytes, params.tolist()) == (24, (2.0, 0.0, 9))
    module = sys.modules[f"{tuned.__name__}.kernels.saxpy"]
    fields = [("scale", "f4"), ("offset", "f4"), ("n", "i4")]
    monkeypatch.setattr(module, "PARAMS", np.dtype(fields, align=True))
    for call in (lambda: saxpy(samples, sums, 3.0), lambda: prepared(samples=samples, sums=sums, scale=3.0, offset=0)):
        with pytest.raises(tuned.UsageError, match="saxpy: params is a structure of 12 bytes, 24 in the source"):
            call()
    assert len(gpu.launched) == 2


# ---------------------------------------------------------------------- on a GPU
@pytest.mark.gpu
def test_gpu_convolves_with_the_filter_of_each_call(tuned: ModuleType) -> None:
    import cupy

    convolve, results = tuned.convolve(), []
    streams = [None, cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)]
    for i in range(60):
        inputs, reference = given(CONVOLVE, n_rows=300 + i % 3, n_columns=500)
        image, weights, scale = cupy.asarray(inputs["image"]), inputs["d_filter"].copy(), np.float32(1 + i % 5)
        cupy.cuda.runtime.deviceSynchronize()
        weights *= scale
        passed = cupy.asarray(weights) if i % 2 else weights
        if i % 2:
            cupy.cuda.runtime.deviceSynchronize()
        results.append((convolve(image, passed, stream=streams[i % 3]), scale * reference["convolved"]))
        weights[...] = np.nan  # what was given may be changed at once
    cupy.cuda.runtime.deviceSynchronize()
    for got, want in results:
        np.testing.assert_allclose(got.get(), want, atol=1e-3)


@pytest.mark.gpu
def test_gpu_prepared_and_with_a_structure(tuned: ModuleType) -> None:
    import cupy

    inputs, reference = given(CONVOLVE)
    out = cupy.full((20, 40), np.nan, np.float32)
    tuned.convolve().prepare()(image=cupy.asarray(inputs["image"]), d_filter=inputs["d_filter"], convolved=out)
    np.testing.assert_allclose(out.get(), reference["convolved"], atol=1e-4)
    inputs, reference = given(SAXPY, n=777)
    sums = cupy.asarray(inputs["sums"])
    tuned.saxpy()(cupy.asarray(inputs["samples"]), sums, inputs["scale"], inputs["offset"])
    np.testing.assert_allclose(sums.get(), reference["sums"], atol=1e-5)


@pytest.mark.gpu
def test_gpu_launches_on_other_streams_wait() -> None:
    import cupy

    order, first, second = Order(), cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    order.begin(first)
    text = 'extern "C" __global__ void spin() { for (long long t = clock64(); clock64() < t + 300000000;); }'
    with first:
        cupy.RawKernel(text, "spin")((1,), (1,), ())
    order.end(first)
    order.begin(second)
    assert not second.done
    second.synchronize()
    assert first.done
