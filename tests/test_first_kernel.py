"""The page "Your first kernel" works as a reader types it, with fewer configurations."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first-kernel.md"
STEP = re.compile(
    r"^    autotune (?P<command>[^\n]+)$|^```(?P<kind>diff|python)\n(?P<block>.*?)^```$", re.DOTALL | re.MULTILINE
)
FEWER = {"sweep": ["--device", "host", "--trials", "2"], "lookup": ["--device", "host"]}


def edit(folder: Path, block: str) -> None:
    """Does to a file what a diff says, whose first line is its name, and whose parts are separated by ``...``."""
    name, lines = block.split("\n", 1)
    text = (folder / name).read_text()
    for part in lines.split("...\n"):
        old, new = (re.sub(f"^[{other}].*\n", "", part, flags=re.MULTILINE) for other in ("+", "-"))
        old, new = (re.sub("^.", "", each, flags=re.MULTILINE) for each in (old, new))
        assert text.count(old) == 1, f"{name} does not have once: {old}"
        text = text.replace(old, new)
    (folder / name).write_text(text)


def test_the_page_works_as_it_is_typed(tmp_path: Path) -> None:
    done = []
    for step in STEP.finditer(PAGE.read_text()):
        if step["kind"] == "diff":
            edit(tmp_path, step["block"])
            continue
        words = ["-c", step["block"]]
        if step["command"]:
            command = shlex.split(step["command"].replace("--all", "--sample 2"))
            words = ["-m", "autotune", *command, *FEWER.get(command[0], [])]
        env = {**os.environ, "COLUMNS": "200"}
        ran = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
        done.append((words[2] if step["command"] else "python", ran.returncode, ran.stdout + ran.stderr))
    said = [text for _, _, text in done]
    kinds = ["new", "list", "verify", "verify", "verify", "sweep", "python", "emit", "lookup"]
    assert [kind for kind, _, _ in done] == kinds and [code for _, code, _ in done] == [0, 0, 0, 1, 0, 0, 0, 0, 0], said
    assert "8        allowed, of 9 combinations" in said[1] and "2 passed, 0 failed" in said[2]
    assert (
        "out-of-bounds read of 4 bytes, 4 bytes from the start of buffer first, which has 4 [total.cu.j2:17]" in said[3]
    )
    assert "2 passed, 0 failed" in said[4] and "2 measured" in said[5]
    assert said[6] == "[ 1.  6. 11.]\n" and "exact" in said[8]
