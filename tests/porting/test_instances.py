"""Instances of templates through the whole line: tuned and verified on host, recorded, and shipped in a package."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Config, Launch
from autotune.cli import program
from autotune.devices import find_device
from autotune.emit.writer import write_package
from autotune.kernel_tuner import run_kernel, tune_kernel
from autotune.porting.answers import Outputs
from autotune.porting.definition_writer import write_definition
from autotune.porting.formulas import Formulas
from autotune.porting.sizes import sizes_of_call
from autotune.rendering.render import Variant
from autotune.source.registry import load_kernel

from ..fake_gpu import array, import_package, install
from ..recorded import H200, record
from .plain_cuda import N, X, call_of

SOURCE = """
#include <cuda_fp16.h>
namespace fir {
__device__ float scaled(float a) { return a; }
template <class T, int N_THREADS, bool IS_NEGATED>
__global__ void scaled(T *y, const T *x, int n)
{
    const int i = blockIdx.x * N_THREADS + threadIdx.x;
    if (i < n) y[i] = (IS_NEGATED ? -1 : 1) * scaled(x[i]);
}
template <class T> void launch(T *y, const T *x, int n) { scaled<T, 64, true><<<2, 64>>>(y, x, n); }
}
int main() { fir::launch<float>(nullptr, nullptr, 0); }
"""
NAME = "scaled<float, block_size_x, NEGATED>"
TOLD = "left out of {} (not needed by the kernel): launch, main (2 functions)"
ARGUMENTS = [np.zeros_like(X), X, np.int32(N)]


def test_an_instance_is_tuned_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = {"block_size_x": [32, 64], "NEGATED": [True, False]}
    given: dict[str, Any] = {"answer": [-X, None, None], "device": "host", "results": tmp_path}
    found, env = tune_kernel(NAME, SOURCE, N, ARGUMENTS, space, **given)
    assert env["counts"] == {"measured": 2, "wrong": 2} and all(result["NEGATED"] for result in found)
    assert TOLD.format("kernel.cu") in capsys.readouterr().out
    kernel = load_kernel(env["definition"])
    launch = kernel.launch(kernel.tuned[0], Config({"block_size_x": 64, "NEGATED": True}))
    assert launch.function == "static_cast<void (*)(float *, const float *, int)>(fir::scaled<float, 64, 1>)"
    doubles = [ARGUMENTS[0].astype(np.float64), X.astype(np.float64), ARGUMENTS[2]]
    again, other = tune_kernel(NAME.replace("float", "double"), SOURCE, N, doubles, space, **given)
    assert len(again) == 2 and other["definition"] != env["definition"], "another instance is another kernel"
    params = {"block_size_x": 32, "NEGATED": False}
    y, *_ = run_kernel(NAME, SOURCE, N, ARGUMENTS, params, device="host", quiet=True)
    assert np.array_equal(np.asarray(y), X)


def test_an_instance_is_tuned_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    words = ["tune", "k.cu", "--kernel", "fir::scaled<float, block_size_x, true>", "--size", "100", "--device", "host"]
    words += ["--param", "block_size_x=64", "--arg", "y=zeros:float32:100", "--arg", "x=random:float32:100"]
    monkeypatch.setattr(sys, "argv", ["autotune", *words, "--arg", "n=int32:100"])
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code == 0 and TOLD.format("k.cu") in capsys.readouterr().err


def test_a_package_has_the_instance_that_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, results = Config({"block_size_x": 64, "NEGATED": True}), tmp_path / "results"
    call = call_of(SOURCE, NAME, NEGATED=[True])
    path = write_definition(Formulas.of(call, sizes_of_call(call)), Outputs({"y": "out", "x": "in"}), results)
    kernel = load_kernel(str(path))
    tuned_at: Any = asdict(kernel.tuned[0])
    record(results, H200, {config: 1.0}, problem=tuned_at, definition=str(path), default=config)
    package = import_package(write_package([results], tmp_path / "tuned", kernels=[path]), "tuned_instance")
    gpu = install(monkeypatch, package, H200)
    scaled = package.scaled()
    assert scaled(array(np.ones(5000, np.float32))).shape == (5000,)
    function = "static_cast<void (*)(float *, const float *, int)>(fir::scaled<float, 64, 1>)"
    assert (gpu.last.grid, gpu.last.function) == ((79, 1, 1), function), "NVRTC has compiled it"
    assert np.array_equal(on_host(package._package.source(scaled.choice.source_key), function), -X)


def on_host(source: str, function: str) -> np.ndarray:
    """Returns what the source of a package computes on host."""
    host = find_device("host")
    session = host.module.open(host.identifier)
    variant = Variant(function, "packaged", "0" * 12, source, source, Config())
    loaded = session.load(host.module.compile(variant, host.device), "check")
    y, x = (session.buffer(name, X.shape, X.dtype, written=name == "y") for name in "yx")
    x.write(X)
    loaded.launch(Launch((2, 1, 1), (64, 1, 1)), [y, x, np.int32(N)])
    return y.read()
