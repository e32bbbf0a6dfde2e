"""First use on a GPU: CuPy's and PyTorch's callers, their streams and graphs, and candidates with real faults."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from autotune.devices import find_device
from autotune.emit.writer import write_package
from autotune.first_use import tuner
from autotune.runtime.lookup import NEAREST, PREDICTED
from autotune.runtime.tune_once import all_outcomes

from ..fake_gpu import import_package
from ..family import descendants, gone
from ..recommend.test_packaged import recorded_on
from ..recorded import KERNELS
from .asking import PARTIES, answer, faulty, statuses, ways

pytestmark = pytest.mark.gpu
N_CHAN = 5000


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("first")
    device = find_device("cuda:0").device
    return write_package([recorded_on(device, base / "results")], base / "tuned", kernels=KERNELS)


@pytest.fixture
def tuned(folder: Path) -> ModuleType:
    return import_package(folder, "tuned_first_use_on_gpu")


def samples(n_chan: int = N_CHAN, n_time: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and what their power is."""
    rng = np.random.default_rng(n_chan)
    data = (rng.normal(size=(n_time, n_chan)) + 1j * rng.normal(size=(n_time, n_chan))).astype(np.complex64)
    return data, np.sum(np.abs(data.astype(np.complex128)) ** 2, axis=0)


def test_a_first_call_of_cupy_is_tuned_here_and_right(tuned: ModuleType) -> None:
    import cupy

    data, want = samples()
    detect = tuned.detect(n_time=100, tune=4)
    stream = cupy.cuda.Stream(non_blocking=True)
    on_gpu = cupy.asarray(data)
    cupy.cuda.runtime.deviceSynchronize()
    with stream:
        power = detect(on_gpu)
    stream.synchronize()
    np.testing.assert_allclose(power.get(), want, rtol=1e-5)
    assert detect.choice.tier == "first use" and detect.choice.verified, detect.choice
    (outcome,) = all_outcomes(pytest.fail)
    assert outcome.n_timed >= 2 and outcome.surroundings.driver
    again = tuned.detect(n_time=100, tune=4)
    np.testing.assert_allclose(again(on_gpu).get(), want, rtol=1e-5)
    assert again.choice == detect.choice and len(list(all_outcomes(pytest.fail))) == 1


def test_a_first_call_of_torch_is_tuned_here_and_right_on_its_stream(tuned: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    data, want = samples(4000)
    detect = tuned.detect(n_time=100, tune="2 s")
    tensor, stream = torch.from_numpy(data).cuda(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        power = detect(tensor)
    torch.cuda.synchronize()
    np.testing.assert_allclose(power.cpu().numpy(), want, rtol=1e-5)
    assert detect.choice.tier == "first use", detect.choice


def test_a_graph_that_is_captured_is_not_disturbed(tuned: ModuleType) -> None:
    import cupy

    data, want = samples()
    detect = tuned.detect(n_time=100)  # the binary of the prediction is there before the capture
    on_gpu, out = cupy.asarray(data), cupy.zeros(N_CHAN, np.float32)
    detect(on_gpu, out=out)
    captured = tuned.detect(n_time=100, tune=4)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.runtime.deviceSynchronize()
    with stream:
        stream.begin_capture()
        captured(on_gpu, out=out)
        graph = stream.end_capture()
    assert captured.choice.tier == detect.choice.tier and list(all_outcomes(pytest.fail)) == []
    out.fill(0)
    cupy.cuda.runtime.deviceSynchronize()
    graph.launch(stream)
    stream.synchronize()
    np.testing.assert_allclose(out.get(), want, rtol=1e-5)


def test_prepare_tunes_in_front_of_a_stream(tuned: ModuleType) -> None:
    import cupy

    data, want = samples()
    prepared = tuned.detect(n_time=100, tune=3).prepare(n_chan=N_CHAN)
    (outcome,) = all_outcomes(pytest.fail)
    assert outcome.fastest is not None and dict(prepared.config) == dict(outcome.fastest.config)
    power = cupy.zeros(N_CHAN, np.float32)
    prepared(voltage=cupy.asarray(data), power=power)
    np.testing.assert_allclose(power.get(), want, rtol=1e-5)


def test_without_memory_nothing_starts(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    room = sys.modules[f"{tuned.__name__}._autotune.runtime.gpu"]
    assert 0 < room.free_bytes(0) <= cupy.cuda.Device(0).mem_info[1]
    monkeypatch.setattr(room, "free_bytes", lambda index: 1 << 20)
    detect = tuned.detect(n_time=100, tune=4)
    detect(cupy.asarray(samples()[0]))
    assert detect.choice.tier in (NEAREST, PREDICTED) and list(all_outcomes(pytest.fail)) == []


# ---------------------------------------------------------------------- faults
@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        ("wrong_element", "wrong"),
        ("near_write_when_timed", "wrong"),
        ("far_write", "launch_failed"),
        ("illegal_address", "launch_failed"),
        ("trap", "launch_failed"),
        ("endless_loop", "timed_out"),
        ("too_much_dynamic_shared", "resources"),
    ],
)
def test_faulty_candidates_leave_the_callers_context_and_arrays_whole(fault: str, ends: str) -> None:
    import cupy

    mine = cupy.arange(1 << 20, dtype=np.int64)
    cupy.cuda.runtime.deviceSynchronize()
    found = answer(faulty(fault, "none", "none"), identifier="cuda:0", seconds=8.0)
    assert statuses(found)[0] == ends and statuses(found)[1:] == ["measured"] * 2, found.attempts
    assert found.winner in (1, 2)
    assert int(mine.sum()) == (1 << 20) * ((1 << 20) - 1) // 2, "the context and the array are whole"


def test_a_majority_at_the_callers_sizes_decides_on_the_gpu_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "LITTLE_FLOPS", 0)
    names = ("low", "right", "right")
    found = answer(ways(*names), definition=PARTIES, fields={"n": 100_000}, identifier="cuda:0")
    assert names[found.winner] == "right" and statuses(found) == ["wrong", "measured", "measured"]


CALLER = """
import logging, sys, cupy, numpy, tuned
logging.basicConfig()
detect = tuned.detect(n_time=100, tune=4)
data = cupy.ones((100, 3000), numpy.complex64)
assert (detect(data).get() == 100).all()
print(detect.choice.tier, detect.choice.config)
"""


def callers(folder: Path, n: int) -> "list[subprocess.Popen[str]]":
    environment: Mapping[str, Any] = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder.parent), *sys.path))}
    pipe = subprocess.PIPE
    return [
        subprocess.Popen([sys.executable, "-c", CALLER], env=environment, stdout=pipe, stderr=pipe, text=True)
        for _ in range(n)
    ]


def test_of_eight_processes_at_once_one_tunes_and_all_run(folder: Path) -> None:
    found = [process.communicate(timeout=300) for process in callers(folder, 8)]
    assert len({out for out, _ in found}) == 1 and found[0][0].startswith("first use "), found
    assert sum("trying" in err for _, err in found) == 1
    assert len(list(all_outcomes(pytest.fail))) == 1


def test_a_caller_that_is_killed_leaves_nothing_behind(folder: Path, own_cache: Path) -> None:
    (first,) = callers(folder, 1)
    assert first.stderr is not None
    for line in first.stderr:
        if "trying" in line:
            break
    started = descendants(first.pid)
    first.kill()
    first.communicate()
    for pid in started:
        while not gone(pid):
            time.sleep(0.05)
    assert [path.suffix for path in (own_cache / "first-use").iterdir()] == [".lock"]
    (second,) = callers(folder, 1)
    out, err = second.communicate(timeout=300)
    assert out.startswith("first use "), err
