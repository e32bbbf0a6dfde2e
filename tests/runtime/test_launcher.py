"""A call from arrays to launch: anywhere on a GPU that takes notes, and under ``-m gpu`` on a real one."""

import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune import Config
from autotune.emit.writer import write_package
from autotune.runtime.signature import MISSING

from ..fake_gpu import FakeGpu, array, import_package, install
from ..recorded import A100, DEFAULT, H100, H200, INTEGRATE, KERNELS, TALL, WIDE, record

PLAIN = Config(WGS=64, PAD=0)
PADDED = Config(WGS=128, PAD=100_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with two kernels, tuned for small and large problems on one GPU."""
    base = tmp_path_factory.mktemp("launcher")
    record(base / "results", H200, {DEFAULT: 30.0, WIDE: 20.0, TALL: 25.0}, n_chan=1000)
    record(base / "results", H200, {DEFAULT: 300.0, WIDE: 250.0, TALL: 200.0}, n_chan=100_000)
    for n_samples, medians in ((1000, {PLAIN: 1.0, PADDED: 2.0}), (64, {PLAIN: 2.0, PADDED: 1.0})):
        problem = {"n_rows": 3, "n_samples": n_samples}
        record(base / "results", H200, medians, problem=problem, definition=INTEGRATE, default=PLAIN)
    return write_package([base / "results"], base / "tuned", kernels=KERNELS)


@pytest.fixture
def tuned(folder: Path) -> Iterator[ModuleType]:
    package = import_package(folder, "tuned_for_launching")
    yield package
    for loaded in [m for m in sys.modules if m.partition(".")[0] == package.__name__]:
        del sys.modules[loaded]


@pytest.fixture
def gpu(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return install(monkeypatch, tuned, H200, H200)


def voltage(n_chan: int, n_time: int = 100) -> Any:
    return array(np.ones((n_time, n_chan), np.complex64))


def integrate_inputs(n_samples: int = 100, **more: Any) -> dict[str, Any]:
    zeros = np.zeros((3, n_samples), np.float32)
    return {"samples": array(zeros), "sums": array(zeros), "gain": 2.0, **more}


# ---------------------------------------------------------------------- what is launched
def test_one_call_launches_what_was_chosen(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect = tuned.detect(n_time=100)
    data = voltage(1000)
    power = detect(data)
    assert (power.shape, power.dtype) == ((1000,), np.float32)
    assert (gpu.last.grid, gpu.last.block, gpu.last.shared_bytes) == ((8, 1, 1), (128, 4, 1), 0)
    assert gpu.last.arguments[0] is power and gpu.last.arguments[1] is data
    assert isinstance(gpu.last.arguments[2], np.int32) and gpu.last.arguments[2] == 1000
    assert gpu.last.stream is None
    assert (detect.choice.tier, detect.choice.config, detect.problem.n_chan) == ("exact", WIDE, 1000)


@pytest.mark.quick
def test_each_size_gets_its_own_choice(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect = tuned.detect(n_time=100)
    assert detect.choice.config == TALL, "before a call: nearest to the kernel's own default size"
    for n_chan, config in ((1000, WIDE), (90_000, TALL), (2000, WIDE), (1000, WIDE)):
        detect(voltage(n_chan))
        assert detect.choice.config == config
        assert gpu.last.block == (config.BLOCK_C, config.BLOCK_T, 1)
    assert len(gpu.loaded) == 2, "one binary for each configuration, whatever the sizes"


def test_arguments_stand_in_the_order_of_the_signature(tuned: ModuleType, gpu: FakeGpu) -> None:
    given = integrate_inputs(offset=3)
    result = tuned.integrate(n_rows=3)(**given)
    smoothed, gain, positive, samples, offset, sums, n_samples = gpu.last.arguments
    assert smoothed is result.smoothed is result[0] and positive is result.positive is result[1]
    assert samples is given["samples"] and sums is given["sums"]
    types = [(type(value), value.item()) for value in (gain, offset, n_samples)]
    assert types == [(np.float32, 2.0), (np.float64, 3.0), (np.int32, 100)]


def test_scalars_have_defaults_and_follow_each_call(tuned: ModuleType, gpu: FakeGpu) -> None:
    integrate = tuned.integrate(n_rows=3)
    given = integrate_inputs()
    seen = []
    for more in ({}, {"gain": 5}, {"gain": np.float32(7), "offset": 1.0}, {}, {"gain": float("nan")}):
        integrate(**{**given, **more})
        seen.append((gpu.last.arguments[1].item(), gpu.last.arguments[4].item()))
    assert seen[:4] == [(2.0, 0.0), (5.0, 0.0), (7.0, 1.0), (2.0, 0.0)]
    assert np.isnan(seen[4][0])


def test_positions_names_and_both(tuned: ModuleType, gpu: FakeGpu) -> None:
    integrate = tuned.integrate(n_rows=3)
    given = integrate_inputs()
    integrate(given["samples"], given["sums"], 2.0)
    first = gpu.last
    integrate(given["samples"], gain=2.0, sums=given["sums"])
    assert first.arguments[3] is given["samples"] and first.arguments[5] is given["sums"]
    assert gpu.last.arguments[3] is first.arguments[3] and gpu.last.arguments[5] is first.arguments[5]


def test_given_outputs_are_written(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect, integrate = tuned.detect(n_time=100), tuned.integrate(n_rows=3)
    power = array(np.zeros(1000, np.float32))
    assert detect(voltage(1000), out=power) is power
    assert gpu.last.arguments[0] is power
    smoothed, positive = array(np.zeros((3, 100), np.float32)), array(np.zeros((3, 100), np.uint8))
    for out in ((smoothed, positive), [smoothed, positive], {"positive": positive, "smoothed": smoothed}):
        result = integrate(**integrate_inputs(), out=out)
        assert result.smoothed is smoothed and result.positive is positive
        assert gpu.last.arguments[0] is smoothed and gpu.last.arguments[2] is positive


def test_nothing_to_compute_launches_nothing(tuned: ModuleType, gpu: FakeGpu) -> None:
    power = tuned.detect(n_time=100)(voltage(0))
    assert power.shape == (0,) and not gpu.launched


def test_large_shared_memory_is_opted_in_and_stays(tuned: ModuleType, gpu: FakeGpu) -> None:
    integrate = tuned.integrate(n_rows=3)
    integrate(**integrate_inputs(64))
    assert gpu.last.shared_bytes == 100_512
    assert [raw.max_dynamic_shared_size_bytes for raw in gpu.loaded] == [100_512]
    integrate(**integrate_inputs(1000))
    integrate(**integrate_inputs(60))
    assert [raw.max_dynamic_shared_size_bytes for raw in gpu.loaded] == [100_512, 256]


def test_streams_of_all_kinds(tuned: ModuleType, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    core = sys.modules[f"{tuned.__name__}._autotune.runtime.gpu"]
    monkeypatch.setattr(core, "_stream_at", lambda address, index: ("stream", address, index))
    detect, data, power = tuned.detect(n_time=100), voltage(10), array(np.zeros(10, np.float32))
    own = SimpleNamespace(ptr=77)
    for given, seen in (
        (own, own),
        (SimpleNamespace(cuda_stream=55), ("stream", 55, 0)),
        (SimpleNamespace(__cuda_stream__=lambda: (0, 44)), ("stream", 44, 0)),
        (33, ("stream", 33, 0)),
    ):
        detect(data, out=power, stream=given)
        assert gpu.last.stream == seen
    with pytest.raises(TypeError, match="stream is of type str"):
        detect(data, out=power, stream="fast")


def test_arrays_decide_the_gpu(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect = tuned.detect(n_time=100)
    detect(voltage(1000))
    detect(array(np.ones((100, 1000), np.complex64), index=1))
    assert len(gpu.loaded) == 2, "a binary is loaded on each GPU"


# ---------------------------------------------------------------------- what is told
def test_all_but_exact_is_logged_once(tuned: ModuleType, gpu: FakeGpu, caplog: pytest.LogCaptureFixture) -> None:
    detect = tuned.detect(n_time=100)
    with caplog.at_level(logging.WARNING):
        detect(voltage(1000))
        assert not caplog.records
        for n_chan in (900, 901, 900, 902):
            detect(voltage(n_chan))
    assert [r.name for r in caplog.records] == [tuned.__name__]
    assert "nearest" in caplog.text and "n_chan=1000" in caplog.text


@pytest.mark.parametrize(("device", "tier"), [(H100, "architecture"), (A100, "default")])
def test_other_gpus_are_told(
    tuned: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, device: Any, tier: str
) -> None:
    fake = install(monkeypatch, tuned, device)
    with caplog.at_level(logging.WARNING):
        detect = tuned.detect(n_time=100)
        detect(voltage(1000))
    assert detect.choice.tier == tier and len(fake.launched) == 1
    assert tier in caplog.text


def test_explanation_lists_what_is_recorded(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect = tuned.detect(n_time=100, n_chan=1000)
    text = detect.explain()
    assert str(detect.choice) in text and "n_chan=100000" in text and "200 us" in text
    assert detect.choice_for(n_chan=100_000).config == TALL
    assert "exact on NVIDIA H200" in repr(detect)


# ---------------------------------------------------------------------- what is refused, before any launch
def wrong_calls() -> dict[str, tuple[dict[str, Any], type[Exception], str]]:
    """Name -> (what is given to integrate, error, words in it)."""
    good = np.zeros((3, 100), np.float32)
    wide = np.zeros((3, 200), np.float32)
    return {
        "missing array": ({"sums": None}, TypeError, "sums is missing"),
        "missing scalar": ({"gain": None}, TypeError, "gain is of type NoneType, not a number"),
        "no scalar": ({"gain": MISSING}, TypeError, "gain is missing; it is a number"),
        "unknown name": ({"colour": 3}, TypeError, "takes samples, sums, gain, offset, not colour"),
        "numpy": ({"samples": good}, TypeError, r"samples is a NumPy array, on the CPU; use cupy.asarray"),
        "list": ({"samples": [1.0]}, TypeError, "samples is of type list"),
        "dtype": ({"samples": array(good.astype(np.float64))}, TypeError, "samples is float64, must be float32"),
        "axes": ({"samples": array(good.reshape(-1))}, ValueError, r"samples has 1 axes, \[300\]; must have 2"),
        "baked axis": ({"samples": array(good[:2])}, ValueError, r"samples has shape \[2, 100\], must have \[3, 100\]"),
        "other size": ({"sums": array(wide)}, ValueError, r"sums has shape \[3, 200\], must have \[3, 100\]"),
        "strided": ({"samples": array(wide)[:, ::2]}, ValueError, "not C-contiguous; use cupy.ascontiguousarray"),
        "transposed": ({"samples": array(good.T.copy()).T}, ValueError, "not C-contiguous"),
        "address": ({"samples": array(good, shift=4)}, ValueError, "not a multiple of 16 bytes"),
        "other gpu": ({"sums": array(good, index=1)}, ValueError, "samples on GPU 0, sums on GPU 1"),
        "array as scalar": ({"gain": array(np.ones(()))}, TypeError, "gain is of type ndarray, not a number"),
        "out for two": ({"out": array(good)}, TypeError, "out has 1 arrays; must have smoothed, positive"),
        "out names": ({"out": {"smoothed": array(good)}}, TypeError, "must have smoothed, positive"),
        "out dtype": ({"out": (array(good), array(good))}, TypeError, "positive is float32, must be uint8"),
        "out shape": ({"out": (array(wide), array(good.astype("u1")))}, ValueError, "smoothed has shape"),
        "out address": ({"out": (array(good, shift=8), array(good.astype("u1")))}, ValueError, "smoothed starts at"),
        "out numpy": ({"out": (good, array(good.astype("u1")))}, TypeError, "smoothed is a NumPy array"),
    }


@pytest.mark.parametrize("wrong", wrong_calls())
def test_wrong_calls_are_refused(tuned: ModuleType, gpu: FakeGpu, wrong: str) -> None:
    given, error, words = wrong_calls()[wrong]
    integrate = tuned.integrate(n_rows=3)
    for warmed in (False, True):  # with and without a plan for the good call
        if warmed:
            integrate(**integrate_inputs())
        n_launched = len(gpu.launched)
        with pytest.raises(error, match=words) as raised:
            called_with = {**integrate_inputs(), **given}
            integrate(**{name: value for name, value in called_with.items() if value is not MISSING})
        assert isinstance(raised.value, tuned.UsageError)
        assert "integrate" in str(raised.value)
        assert len(gpu.launched) == n_launched


def test_positions_are_counted(tuned: ModuleType, gpu: FakeGpu) -> None:
    detect = tuned.detect(n_time=100)
    with pytest.raises(TypeError, match="2 arguments were given by position"):
        detect(voltage(10), 3)
    with pytest.raises(TypeError, match="voltage was given twice"):
        detect(voltage(10), voltage=voltage(10))


def test_a_fixed_size_is_kept_to(tuned: ModuleType, gpu: FakeGpu) -> None:
    with pytest.raises(ValueError, match=r"voltage has shape \[100, 10\], must have \[100, 1000\]"):
        tuned.detect(n_time=100, n_chan=1000)(voltage(10))


def test_a_named_device_must_be_the_one(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, tuned, A100)
    detect = tuned.detect(n_time=100, device="NVIDIA H200")
    assert detect.choice.tier == "exact"
    with pytest.raises(tuned.UsageError, match="made for NVIDIA H200; the arrays are on GPU 0, NVIDIA A100"):
        detect(voltage(10))
    assert not fake.launched


def test_too_little_shared_memory_falls_back(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, tuned, replace(H200, max_shared_bytes=50_000))
    integrate = tuned.integrate(n_rows=3)
    integrate(**integrate_inputs(64))
    assert integrate.choice.config.PAD == 0 and fake.last.shared_bytes == 4 * integrate.choice.config.WGS


def test_a_source_that_does_not_compile_is_told(tuned: ModuleType, gpu: FakeGpu, monkeypatch: Any) -> None:
    detect = tuned.detect(n_time=100)
    monkeypatch.setattr(detect, "_source", lambda key: "no C++")
    with pytest.raises(tuned.UsageError, match="detect cannot be compiled for sm_90"):
        detect(voltage(10))


def test_an_unwritable_cache_is_no_obstacle(tuned: ModuleType, gpu: FakeGpu, monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "file"))
    tuned.detect(n_time=100)(voltage(10))
    assert len(gpu.launched) == 1


def test_cache_place_follows_the_environment(tuned: ModuleType, monkeypatch: Any, tmp_path: Path) -> None:
    core = sys.modules[f"{tuned.__name__}._autotune.runtime.gpu"]
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path))
    assert core.cache_folder() == tmp_path / "cubin"
    monkeypatch.delenv("AUTOTUNE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert core.cache_folder() == tmp_path / "xdg" / "autotune" / "cubin"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert core.cache_folder() == Path.home() / ".cache" / "autotune" / "cubin"


# ---------------------------------------------------------------------- PyTorch's arrays, as far as they go without it
class Tensor:
    """What a launcher asks of a torch.Tensor."""

    def __init__(self, data: np.ndarray, *, index: int = 0, conjugate: bool = False, grad: bool = False) -> None:
        self.data, self.index, self.conjugate, self.requires_grad = data, index, conjugate, grad
        self.shape, self.dtype = data.shape, f"torch.{data.dtype}"

    def data_ptr(self) -> int:
        return 1 << 20

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.data.itemsize for step in self.data.strides)

    def get_device(self) -> int:
        return self.index

    def is_conj(self) -> bool:
        return self.conjugate

    def is_neg(self) -> bool:
        return False

    def is_contiguous(self) -> bool:
        return bool(self.data.flags.c_contiguous)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu, tuned: ModuleType) -> Any:
    stream = SimpleNamespace(cuda_stream=99)
    module = SimpleNamespace(Tensor=Tensor, cuda=SimpleNamespace(current_stream=lambda index: stream))
    monkeypatch.setitem(sys.modules, "torch", module)
    core = sys.modules[f"{tuned.__name__}._autotune.runtime.gpu"]
    monkeypatch.setattr(core, "_stream_at", lambda address, index: ("stream", address))
    return module


def test_tensors_are_passed_by_address_on_their_stream(tuned: ModuleType, gpu: FakeGpu, torch: Any) -> None:
    data, power = Tensor(np.zeros((100, 10), np.complex64)), Tensor(np.zeros(10, np.float32))
    assert tuned.detect(n_time=100)(data, out=power) is power
    assert gpu.last.arguments == (1 << 20, 1 << 20, np.int32(10))
    assert gpu.last.stream == ("stream", 99)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (Tensor(np.zeros((100, 10), np.complex64), index=-1), r"voltage is on the CPU; use voltage.cuda\(\)"),
        (Tensor(np.zeros((100, 10), np.complex64), conjugate=True), "resolve_conj"),
        (Tensor(np.zeros((100, 10), np.complex64), grad=True), "detach"),
        (Tensor(np.zeros((10, 100), np.complex64).T), r"use voltage.contiguous\(\)"),
        (Tensor(np.zeros((100, 10), np.complex128)), r"use voltage.to\(torch.complex64\)"),
    ],
)
def test_tensors_that_do_not_fit(tuned: ModuleType, gpu: FakeGpu, torch: Any, tensor: Tensor, words: str) -> None:
    power = Tensor(np.zeros(10, np.float32))
    with pytest.raises(tuned.UsageError, match=words):
        tuned.detect(n_time=100)(tensor, out=power)
    assert not gpu.launched


# ---------------------------------------------------------------------- on a real GPU
@pytest.mark.gpu
@pytest.mark.parametrize("n_chan", [1, 33, 1000, 4097])
def test_gpu_matches_the_reference(tuned: ModuleType, n_chan: int) -> None:
    import cupy

    rng = np.random.default_rng(n_chan)
    data = (rng.normal(size=(100, n_chan)) + 1j * rng.normal(size=(100, n_chan))).astype(np.complex64)
    detect = tuned.detect(n_time=100)
    want = np.sum(np.abs(data.astype(np.complex128)) ** 2, axis=0)
    out = cupy.full(n_chan, np.nan, np.float32)
    for power in (detect(cupy.asarray(data)), detect(voltage=cupy.asarray(data), out=out)):
        assert isinstance(power, cupy.ndarray)
        np.testing.assert_allclose(power.get(), want, rtol=1e-5)
    assert detect(cupy.empty((100, 0), np.complex64)).shape == (0,)


@pytest.mark.gpu
@pytest.mark.parametrize("n_samples", [64, 65, 1000])
def test_gpu_updates_in_place_with_large_shared_memory(tuned: ModuleType, n_samples: int) -> None:
    import cupy

    integrate = tuned.integrate(n_rows=3)
    kernel = tuned._package.kernel("integrate")
    problem = kernel.problem({"n_rows": 3, "n_samples": n_samples})
    given = kernel.inputs(problem, np.random.default_rng(1))
    on_gpu = {name: cupy.asarray(v) if isinstance(v, np.ndarray) else v for name, v in given.items()}
    want = kernel.reference(problem, **given)
    result = integrate(**on_gpu)
    for name, got in (("sums", on_gpu["sums"]), ("smoothed", result.smoothed), ("positive", result.positive)):
        np.testing.assert_allclose(got.get(), want[name], rtol=1e-5, atol=1e-5)
    if n_samples == 64 and integrate.choice.tier != "default":
        assert integrate.choice.config == PADDED


@pytest.mark.gpu
def test_gpu_takes_torch_tensors(tuned: ModuleType) -> None:
    import torch

    rng = np.random.default_rng(0)
    data = (rng.normal(size=(100, 500)) + 1j * rng.normal(size=(100, 500))).astype(np.complex64)
    want = np.sum(np.abs(data.astype(np.complex128)) ** 2, axis=0)
    detect = tuned.detect(n_time=100)
    stream = torch.cuda.Stream()
    tensor = torch.from_numpy(data).cuda()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        results = [detect(tensor), detect(tensor, stream=torch.cuda.Stream())]
    torch.cuda.synchronize()
    out = torch.full((500,), float("nan"), device="cuda")
    results.append(detect(tensor, out=out))
    for power in results:
        assert isinstance(power, torch.Tensor)
        np.testing.assert_allclose(power.cpu().numpy(), want, rtol=1e-5)
    for wrong, words in (
        (tensor.cpu(), "on the CPU"),
        (tensor.conj(), "resolve_conj"),
        (tensor.t().contiguous().t(), "contiguous"),
        (tensor.clone().requires_grad_(), "detach"),
    ):
        with pytest.raises(tuned.UsageError, match=words):
            detect(wrong)


@pytest.mark.gpu
def test_gpu_streams_and_foreign_arrays(tuned: ModuleType) -> None:
    import cupy

    class Foreign:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        @property
        def __cuda_array_interface__(self) -> Any:
            return self.inner.__cuda_array_interface__

    data = cupy.full((100, 500), 1 + 1j, np.complex64)
    detect = tuned.detect(n_time=100)
    cupy.cuda.runtime.deviceSynchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    results = [detect(data, stream=stream), detect(data, stream=stream.ptr), detect(Foreign(data))]
    with stream:
        results.append(detect(data))
    cupy.cuda.runtime.deviceSynchronize()
    for power in results:
        np.testing.assert_allclose(power.get(), 200.0)


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", ["numpy", "dtype", "strided", "address", "axes"])
def test_gpu_refuses_before_it_launches(tuned: ModuleType, wrong: str) -> None:
    import cupy

    good = cupy.ones((100, 500), np.complex64)
    bad = {
        "numpy": good.get(),
        "dtype": good.astype(np.complex128),
        "strided": cupy.ones((100, 1000), np.complex64)[:, ::2],
        "address": cupy.ones(50_001, np.complex64)[1:].reshape(100, 500),
        "axes": good.reshape(-1),
    }
    with pytest.raises(tuned.UsageError):
        tuned.detect(n_time=100)(bad[wrong])
    np.testing.assert_allclose(tuned.detect(n_time=100)(good).get(), 100.0)
