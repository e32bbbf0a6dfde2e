"""What tests of packages share: a package of recorded sweeps, and a Python that has no autotune."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.emit.writer import write_package

from ..recorded import A100, DEFAULT, H200, HOST, KERNELS, TALL, WIDE, record

MEDIANS = {DEFAULT: 30.0, WIDE: 20.0, TALL: 25.0}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two sizes on one GPU, another GPU, and the host."""
    results = tmp_path / "results"
    record(results, H200, MEDIANS)
    record(results, H200, {DEFAULT: 300.0, WIDE: 250.0, TALL: 200.0}, n_chan=65536)
    record(results, A100, {DEFAULT: 40.0, WIDE: 50.0, TALL: 45.0})
    record(results, HOST, MEDIANS, n_time=7)
    return write_package([results], tmp_path / "tuned", kernels=KERNELS)


def python(code: str, folder: Path, *flags: str, **environment: str) -> str:
    """Run ``code`` in ``folder`` by a Python that has no autotune on its path; its stdout."""
    block = "import sys\nfor name in ('autotune', 'jinja2', 'optuna', 'pandas'): sys.modules[name] = None\n"
    done = subprocess.run(
        [sys.executable, *flags, "-c", block + code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
