"""What says whether a template is still the same machine code: two sources, and a commit against this tree."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from autotune.runtime import nvrtc

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "machine_code.py"
TEXT = 'constexpr int N = 3;\nextern "C" __global__ void detect(int* x) { *x += N; }\n'


@pytest.fixture(autouse=True)
def compiler() -> None:
    if (reason := nvrtc.available()) is not None:
        pytest.skip(reason)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare_machine_code", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look for it
    monkeypatch.syspath_prepend(SCRIPT.parent)  # as when it is run: it imports from the files beside it
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [("", "// a remark\n", True), ("N", "N_FIRST", True), ("= 3", "= 4", False), ("*x += N", "*x += M", False)],
)
def test_two_sources_are_compared_by_what_runs(script: ModuleType, old: str, new: str, is_same: bool) -> None:
    found, before, after = script.compare("detect", TEXT, TEXT.replace(old, new, -1 if old else 1))
    assert found == is_same and before.registers
    assert ("compile_failed" in str(after)) == ("M" in new), "a text that does not compile says so"
    assert script.compare("detect", TEXT, TEXT)[0]


def test_a_commit_is_compared_with_this_tree() -> None:
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if git.returncode:
        pytest.skip("this is no checkout")
    words = [sys.executable, SCRIPT, "--at", "HEAD", "--kernel", "accumulate", "--only", "flat_pairs"]
    told = subprocess.run([*words, "--processes", "1"], capture_output=True, text=True, timeout=120)
    assert told.returncode in (0, 1), told.stderr  # this tree may differ, where its template is being edited
    assert told.stdout.splitlines()[2].startswith("| accumulate | 1 | ")
