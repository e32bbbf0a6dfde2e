"""The driver's version is read where the system tells it, and whether other processes' faults are shared."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cupy
import pytest

from autotune.runtime import gpu

CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (builder@host)  Thu Aug 28\n"


@pytest.mark.parametrize(("text", "version"), [(CLOSED, "535.104.05"), (OPEN, "580.82.07"), ("other", "CUDA 13000")])
def test_the_driver_has_a_version(text: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(gpu, "DRIVER", tmp_path / "version")
    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: 13000)
    gpu.driver.cache_clear()
    assert gpu.driver() == version
    gpu.driver.cache_clear()


def test_a_daemon_that_shares_faults_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert gpu.shares_faults() is None
    (tmp_path / "control").touch()
    assert f"a CUDA MPS daemon runs (in {tmp_path})" in str(gpu.shares_faults())


@pytest.mark.parametrize(("answer", "is_capturing"), [(0, False), (1, True), (None, True)])
def test_a_stream_that_may_not_be_asked_counts_as_capturing(
    answer: int | None, is_capturing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(stream: int) -> Any:
        if answer is None:
            raise cupy.cuda.runtime.CUDARuntimeError(906)
        return answer

    monkeypatch.setattr(cupy.cuda.runtime, "streamIsCapturing", asked)
    assert gpu.is_capturing(SimpleNamespace(ptr=7)) is is_capturing
