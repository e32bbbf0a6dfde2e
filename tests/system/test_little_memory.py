"""Under `ulimit -v` commands work, or end with one line."""

import os
import subprocess
import sys
from pathlib import Path

from ..host_files import with_host_files
from ..paths import RIGHT, SKY

LIMIT_KB = 900_000


def limited(words: str, folder: Path, limit_kb: int = LIMIT_KB) -> tuple[int, str]:
    """The exit status of a command and what it tells."""
    own = {"AUTOTUNE_CACHE_DIR": str(with_host_files(folder / "cache")), "AUTOTUNE_LOCK_DIR": str(folder / "locks")}
    done = subprocess.run(
        ["bash", "-c", f'ulimit -v {limit_kb}; exec "$0" -m autotune {words}', sys.executable],
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stderr


def test_sweeps_and_what_reads_them_work(tmp_path: Path) -> None:
    swept = (f"sweep --kernel dequantize --device {device} --trials 3" for device in ("simulated", "host"))
    for words in (*swept, RIGHT["show"], RIGHT["emit"]):
        assert limited(words, tmp_path)[0] == 0, words
    code, told = limited("lookup fresh --kernel dequantize --device simulated", tmp_path)
    assert code == 0, told


def test_engines_work_or_end_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "sky.toml").write_text(SKY)
    assert limited("sky sky.toml --out night", tmp_path)[0] == 0
    code, told = limited(RIGHT["correlate"], tmp_path)
    assert code == 0 or (code == 1 and told.splitlines()[-1].startswith("autotune: out of memory (")), told
    assert "Traceback" not in told


def test_checks_that_need_more_memory_say_how_much(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void twice(float* x) { x[blockIdx.x * 64 + threadIdx.x] *= 2; }")
    given = "--kernel twice --arg x=zeros:float32:16777216 --size 16777216 --param block_size_x=64 --device host"
    code, told = limited(f"tune k.cu {given}", tmp_path, 2 * LIMIT_KB)
    assert code == 1 and "out of memory (twice: the checks of x, 64 MiB, need " in told, told
