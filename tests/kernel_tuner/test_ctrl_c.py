"""One Ctrl-C ends a script that tunes several kernels, and keeps what was measured."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import autotune

SCRIPT = """
import numpy as np
from autotune.kernel_tuner import tune_kernel

SOURCE = "__global__ void fill(float *y, int n) {{ int i = blockIdx.x * block_size_x + threadIdx.x;" \\
         " if (i < n) y[i] = K + {}; }}"
for number in range(3):
    y, n = np.zeros(100, np.float32), np.int32(100)
    space = {"block_size_x": [32, 64, 96, 128], "K": list(range(12))}
    tune_kernel("fill", SOURCE.format(number), 100, [y, n], space, device="simulated:3", **%s)
    print("tuned", number, flush=True)
"""


def begun(folder: Path, options: str) -> "subprocess.Popen[str]":
    words = [sys.executable, "-u", "-c", SCRIPT % options]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize("options", ["{}", "{'strategy': 'random_sample', 'strategy_options': {'max_fevals': 40}}"])
def test_the_script_ends_and_a_second_call_goes_on(tmp_path: Path, options: str) -> None:
    process = begun(tmp_path, options)
    assert process.stdout is not None
    for line in process.stdout:  # one config is measured by now
        if "time=" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT, rest
    assert "interrupted: all trials so far are in results" in rest and "tuned" not in rest
    trials = autotune.load(tmp_path / "results")
    assert 0 < len(trials) < 40
    again = begun(tmp_path, options)
    out, _ = again.communicate(timeout=300)
    assert [line for line in out.splitlines() if line.startswith("tuned")] == ["tuned 0", "tuned 1", "tuned 2"]
    assert len(autotune.load(tmp_path / "results")) in (3 * 40, 3 * 48)
