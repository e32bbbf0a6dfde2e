"""Several launches and their workspace in an emitted package, on a GPU that takes notes."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from autotune import Config
from autotune.emit.writer import write_package

from ..conftest import DEFINITIONS
from ..fake_gpu import FakeGpu, array, import_package, install
from ..recorded import H200, record

CENTRE = str(DEFINITIONS / "centre.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base, config = tmp_path_factory.mktemp("workspace"), Config({"WIDTH": 32})
    problem = {"n_rows": 3, "n": 100}
    record(base / "results", H200, {config: 1.0}, problem=problem, definition=CENTRE, default=config)
    return write_package([base / "results"], base / "tuned", kernels=[CENTRE])


@pytest.fixture
def tuned(folder: Path) -> Iterator[ModuleType]:
    package = import_package(folder, "tuned_in_steps")
    yield package
    for loaded in [m for m in sys.modules if m.partition(".")[0] == package.__name__]:
        del sys.modules[loaded]


@pytest.fixture
def gpu(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return install(monkeypatch, tuned, H200)


def test_a_call_makes_both_launches_with_one_workspace(tuned: ModuleType, gpu: FakeGpu) -> None:
    values, stream, centre = array(np.ones((3, 100), np.float32)), SimpleNamespace(ptr=7), tuned.centre()
    centred = centre(values, stream=stream)
    first, second = gpu.launched
    assert (first.function, second.function) == ("centre", "subtract") and len(gpu.loaded) == 2
    assert first.stream is stream and second.stream is stream and first.grid == second.grid == (4, 3, 1)
    sums, given, n = first.arguments
    assert given is values and n == 100 and sums.nbytes == 48 == centre.workspace_bytes
    assert all(a is b for a, b in zip(second.arguments, (centred, values, sums), strict=False))
    centre(array(np.ones((2, 100), np.float32)))
    assert gpu.last.arguments[2] is sums  # it is large enough for fewer rows
    centre(array(np.ones((4, 100), np.float32)))
    assert gpu.last.arguments[2].nbytes == 64 == centre.workspace_bytes


def test_a_prepared_kernel_has_its_workspace_before_its_first_call(tuned: ModuleType, gpu: FakeGpu) -> None:
    centre = tuned.centre().prepare(n_rows=3, n=100)
    assert centre.workspace_bytes == 48 and not gpu.launched
    arrays = {"values": array(np.ones((3, 100), np.float32)), "centred": array(np.ones((3, 100), np.float32))}
    centre(**arrays)
    assert [launched.function for launched in gpu.launched] == ["centre", "subtract"]
    assert gpu.launched[0].arguments[0] is gpu.launched[1].arguments[2]
