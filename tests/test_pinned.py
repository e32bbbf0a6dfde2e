"""What decides how a trial ends does not change unnoticed; and the pin notices what it must, and nothing else."""

import json
from pathlib import Path

import pytest

from . import pinned

pytestmark = pytest.mark.quick


def test_the_measuring_code_is_as_it_was_when_its_number_was_given() -> None:
    before, today = json.loads(pinned.PINNED.read_text()), pinned.now()
    names = before["files"].keys() | today["files"].keys()
    changed = sorted(name for name in names if before["files"].get(name) != today["files"].get(name))
    assert before == today, (
        f"{', '.join(changed) or 'MEASURING'} changed. If a trial may end otherwise than before, raise MEASURING "
        "in autotune/trial/measure.py. In any case run `python -m tests.pinned`, and commit tests/pinned.json with it"
    )


def test_what_a_time_depends_on_is_pinned() -> None:
    files = pinned.now()["files"]
    needed = ("verify", "measure", "interleaved", "tensor_map", "definition", "processes", "case", "nvrtc", "stations")
    names = {Path(file).name for file in files}
    assert {f"{name}.py" for name in needed} <= names
    assert {"worker.py", "host/build.py", "cuda/probes.cu", "host/cuda/mma.hpp"} <= {f.partition("/")[2] for f in files}
    rooms = {file.partition("/")[0] for file in files}
    assert rooms == {"core", "runtime", "rendering", "source", "system", "records", "devices", "trial"}, (
        "no room above counts"
    )


@pytest.mark.parametrize(
    ("suffix", "before", "after", "is_same"),
    [
        (".py", "a = 1  # one\n", '"""Doc."""\na = (\n    1\n)\n', True),
        (".py", 'def f():\n    """Doc."""\n    return 1\n', "def f():\n    return 1\n", True),
        (".py", "a = 1\n", "a = 2\n", False),
        (".py", "def f(a=1): pass\n", "def f(a=None): pass\n", False),
        (".py", "a < b\n", "a <= b\n", False),
        (".cu", "int a; // one\n/* two\n */ int b;\n", "int a;\nint b;", True),
        (".cu", 'asm("// no comment");', 'asm("");', False),
    ],
)
def test_only_the_meaning_counts(suffix: str, before: str, after: str, is_same: bool, tmp_path: Path) -> None:
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    one.write_text(before)
    other.write_text(after)
    assert (pinned.digest(one) == pinned.digest(other)) == is_same
