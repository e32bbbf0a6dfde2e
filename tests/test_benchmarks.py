"""Benchmarks need a GPU and minutes, but what they take from the package must be there, and what it does must work."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parent.parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_benchmark_imports_is_there(file: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if node.module and node.module.split(".")[0] == "autotune"]
    for node in own:
        module = import_module(node.module or "")
        assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_winners_are_measured_side_by_side() -> None:
    words = ["--kernel", "dequantize", "--device", "simulated:0", "--sweeps", "2", "--trials", "6"]
    script = str(next(file for file in FILES if file.stem == "repeatability"))
    told = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    last = [line.split() for line in told.stdout.splitlines()[-2:]]
    assert [line[0] for line in last] == ["0", "1"] and "fastest" in last[0] + last[1]
