"""The page "Your first kernel" works as a reader types it, with fewer configurations."""

import logging
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import program

PAGE = Path(__file__).resolve().parents[1] / "docs" / "first-kernel.md"
STEP = re.compile(
    r"^    autotune (?P<command>[^\n]+)$|^```(?P<kind>diff|python)\n(?P<block>.*?)^```$", re.DOTALL | re.MULTILINE
)
FEWER = {"sweep": ["--device", "host", "--trials", "2"]}


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


def typed(command: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit code and what is said; in this process where the definition is not read, or for the last time."""
    if command[0] in ("new", "emit", "lookup"):
        monkeypatch.setattr(sys, "argv", ["autotune", *command])
        with pytest.raises(SystemExit) as end:
            program.main()
        logging.disable(logging.NOTSET)  # as it was before `lookup`
        return int(end.value.code or 0), "".join(capfd.readouterr())
    words = command if command[0] == "-c" else ["-m", "autotune", *command]
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def test_the_page_works_as_it_is_typed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = []
    for step in STEP.finditer(PAGE.read_text()):
        if step["kind"] == "diff":
            edit(tmp_path, step["block"])
            continue
        words = shlex.split((step["command"] or "").replace("--all", "--sample 1")) or ["-c", step["block"]]
        done.append((words[0], *typed([*words, *FEWER.get(words[0], [])], capfd, monkeypatch)))
    kinds, codes, said = zip(*done, strict=True)
    assert kinds == ("new", "list", "verify", "verify", "verify", "sweep", "-c", "emit", "lookup"), said
    assert codes == (0, 0, 0, 1, 0, 0, 0, 0, 0), said
    assert "8        allowed, of 9 combinations" in said[1] and "1 passed, 0 failed" in said[2]
    assert (
        "out-of-bounds read of 4 bytes, 4 bytes from the start of buffer first, which has 4 [total.cu.j2:17]" in said[3]
    )
    assert "1 passed, 0 failed" in said[4] and "2 measured" in said[5]
    assert said[6] == "[ 1.  6. 11.]\n" and "exact" in said[8]
