"""Callers of one process and of its forks: each gets its own outputs, or one line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.system import memory

from .callers import DASK, PACKAGE, PREPARED, RUN, Crowd, package_calls, real_package_calls, run_call

FIELDS = {"n_beams": 1, "n_freqs": 3, "n_times": 256}
ROOT = Path(__file__).parents[1]
SAMPLES = np.zeros((1, 3, 128), np.uint8)
NO_TURNS = """
import os
from contextlib import nullcontext
from autotune.devices import find_device
from autotune.trial.shared_workers import SHARED
from tests.callers import RUN, Crowd, run_call
crowd = Crowd({RUN: run_call("host")}, seed=0)
SHARED.of(find_device("host"))._child._turn = nullcontext()
for _ in range(100):
    crowd.calls_for(0.3, 8, patience_s=1.0)
    if crowd.wrong:
        print(dict(crowd.wrong), flush=True)
        os._exit(0)
"""
FORKS = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np, autotune
def right(value):
    samples = np.full((1, 3, 128), value, np.uint8)
    out = autotune.run("dequantize", inputs={"samples": samples}, problem=FIELDS, device="host")
    return bool((out["values"] == out["values"][0, 0, 0]).all()) and float(out["values"][0, 0, 0])
def line(value):
    try:
        return right(value)
    except autotune.UsageError as error:
        return str(error)
alone = [right(value) for value in range(0, 102, 17)]
forked = multiprocessing.get_context("fork")
with ProcessPoolExecutor(2, forked) as pool:
    assert list(pool.map(right, range(0, 102, 17))) == alone
def swept(number):
    problem = {"n_beams": 1, "n_freqs": 3 + number, "n_times": 256}
    done = autotune.sweep("dequantize", problem=problem, device="simulated", results="results", trials=2)
    return len(done.trials)
SCALE = 'extern "C" __global__ void scale(float *y, const float *x, int n) { int i = threadIdx.x; y[i] = 2 * x[i]; }'
def scaled(number):
    x = np.full(64, number, np.float32)
    y, *_ = autotune.run_kernel("scale", SCALE, 64, [0 * x, x, np.int32(64)], {"block_size_x": 64}, device="host")
    return float(y[0])
with ProcessPoolExecutor(2, forked) as pool:
    assert list(pool.map(swept, range(3))) == [2, 2, 2]
    assert list(pool.map(scaled, range(4))) == [0, 2, 4, 6]
with forked.Pool(2) as pool:
    (found,) = {*pool.map(line, range(4))}
assert found.startswith("autotune-device cannot be started by a worker of multiprocessing.Pool; use threads"), found
child = os.fork()
if child == 0:
    sys.exit(not right(17) == alone[1])
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert [right(value) for value in range(0, 102, 17)] == alone
print("right")
"""


def test_each_thread_gets_its_own_outputs(tmp_path: Path) -> None:
    with package_calls(tmp_path) as calls:
        crowd = Crowd({**calls, RUN: run_call("host")}, seed=0)
        for n in (4, DASK):
            crowd.calls_for(1.5, n)
    assert not crowd.wrong and {*crowd.made} == {RUN, PACKAGE, PREPARED}


@pytest.mark.gpu
def test_each_thread_gets_its_own_outputs_from_a_gpu(tmp_path: Path) -> None:
    problem = {"n_beams": 2, "n_freqs": 64}
    autotune.sweep("dequantize", problem=problem, device="cuda:0", results=tmp_path / "results", trials=3)
    with real_package_calls(tmp_path, tmp_path / "results") as calls:
        crowd = Crowd({**calls, RUN: run_call("cuda:0")}, seed=0)
        for n in (4, DASK):
            crowd.calls_for(3, n)
    assert not crowd.wrong and {*crowd.made} == {RUN, PACKAGE, PREPARED}


def test_callers_who_take_no_turns_are_found() -> None:
    done = subprocess.run([sys.executable, "-c", NO_TURNS], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout and (not done.returncode), done.stderr


def test_forks_begin_anew_or_say_what_to_do(tmp_path: Path) -> None:
    program = f"FIELDS = {FIELDS}\n{FORKS}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


def test_run_refuses_what_it_cannot_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"inputs": {"samples": SAMPLES}, "problem": FIELDS}
    with pytest.raises(autotune.UsageError, match="simulated computes nothing, so run has no outputs there"):
        autotune.run("dequantize", device="simulated", **given)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(autotune.UsageError, match=r"the arrays of dequantize .* and this machine has 1e-06 GB free"):
        autotune.run("dequantize", device="host", **given)
