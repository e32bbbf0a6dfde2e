"""CuPy can be imported where a home cannot be written, and keeps its own folder where it can."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os
import autotune.runtime
import cupy
print(os.environ.get("CUPY_CACHE_DIR", "its own"))
"""


def told(home: str, **more: str) -> str:
    pytest.importorskip("cupy")
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "CUPY_CACHE_DIR")}
    words = [sys.executable, "-c", SCRIPT]
    return subprocess.run(words, env={**kept, "HOME": home, **more}, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("home", ["/dev/null", "/dev/null/nobody", "/proc/1", "/proc/no/such"])
def test_a_home_that_cannot_be_written(home: str) -> None:
    folder = told(home).strip()
    assert "autotune-cupy-" in folder and not Path(folder).exists()


def test_homes_that_can(tmp_path: Path) -> None:
    assert told(str(tmp_path)).strip() == "its own"
    assert (tmp_path / ".cupy" / "kernel_cache").is_dir()
    assert told(str(tmp_path / "new" / "home")).strip() == "its own"


def test_what_was_named_stays(tmp_path: Path) -> None:
    assert told("/dev/null", CUPY_CACHE_DIR=str(tmp_path / "c")).strip() == str(tmp_path / "c")
