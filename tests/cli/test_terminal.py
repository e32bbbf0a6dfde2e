"""A terminal's manners: lines keep to its width, Ctrl-C ends every command in one line, tables break after commas."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from autotune.cli import app, console, report
from autotune.cli.commands import sky as sky_command
from autotune.cli.console import ProgressText, cut_middle
from autotune.cli.tables import print_table
from autotune.core.units import broken_at_commas

from ..commands import ended
from ..conftest import EXAMPLE

COMMANDS: Any = typer.main.get_command(app)
KERNEL = ["--kernel", EXAMPLE]
WORDS = {  # the fewest that each command takes
    "list": [],
    "render": KERNEL,
    "verify": KERNEL,
    "new": ["mine"],
    "sweep": KERNEL,
    "tune": ["x.cu", "--kernel", "x", "--size", "8", "--arg", "n=int32:8", "--param", "block_size_x=32"],
    "campaign": ["plan.toml"],
    "worker": ["tls://host:8786"],
    "show": ["results"],
    "report": ["results", "--out", "report.html"],
    "compare": ["before", "after"],
    "export": ["results"],
    "emit": ["results", "--out", "tuned"],
    "digest": ["results"],
    "pack": ["results"],
    "portfolio": ["results"],
    "sky": ["sky.toml", "--out", "night"],
    "array": ["night"],
    "channelise": ["m000.toml", "--channels", "64", "--out", "x.h5"],
    "correlate": ["m000.h5", "--accumulate", "2", "--out", "x.h5"],
    "dsim": ["dsim.toml"],
    "fengine": ["fengine.toml"],
    "xengine": ["xengine.toml"],
    "lookup": ["tuned", "--kernel", "ddc"],
    "doctor": [],
}


def on_a_terminal(words: list[str], seen: str = "", columns: int = 80, **environment: str) -> tuple[int, list[str]]:
    """The exit code of a command on a terminal of so many columns, where Ctrl-C is pressed once ``seen`` was; and the
    lines that were drawn, one after the other, without colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **environment}
    command = [sys.executable, "-m", "autotune", *words]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, text=False)
    os.close(theirs)
    drawn = b""
    with pytest.raises(OSError):  # the end of a terminal is an error
        while data := os.read(ours, 1 << 16):
            drawn += data
            if seen and seen.encode() in drawn:
                process.send_signal(signal.SIGINT)
                seen = ""
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn.decode())
    assert drawn.rfind(b"\x1b[?25h") >= drawn.rfind(b"\x1b[?25l"), "the cursor is shown again"
    return process.wait(60), re.split(r"[\r\n]+", text)


def test_progress_and_tables_keep_to_the_width_of_a_terminal(tmp_path: Path) -> None:
    words = ["sweep", "--kernel", "ddc", "--device", "simulated", "--trials", "8", "--results", str(tmp_path)]
    code, lines = on_a_terminal(words)
    bars = [line for line in lines if " left " in line]
    assert code == 0 and bars, lines
    assert max(map(len, bars)) <= 80
    assert re.search(r"━ 8/8 \d:\d\d:\d\d left 00:00 best [0-9.]+ [mu]s ALG[A-Z=a-z,]*\.\.\S+", bars[-1]), bars[-1]
    first, last = (next(i for i, line in enumerate(lines) if line.startswith(name)) for name in ("best", "speed-up"))
    configs = [line for line in lines[first:last] if line.startswith("    ")]
    assert len(configs) >= 2 and max(map(len, lines[first:last])) <= 80
    assert all(line.endswith(",") for line, below in pairwise(configs) if "ALGORITHM" not in below)


def test_verify_tells_at_ctrl_c_what_has_passed() -> None:
    words = ["verify", *KERNEL, "--device", "simulated", "--all"]
    code, lines = on_a_terminal(words, seen=" 1/26", AUTOTUNE_SIMULATED_COMPILE_S="0.3")
    text = "\n".join(lines)
    assert code == 130 and "Traceback" not in text, text
    assert re.search(r"detect: \d+ passed, 1 failed, 0 skipped, \d+ not checked", text), text
    assert re.search(r"autotune: stopped by Ctrl-C; \d+ of 26 variants were checked; ", text), text


@pytest.mark.quick
@pytest.mark.parametrize("name", COMMANDS.commands)
def test_ctrl_c_ends_every_command_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(typer.core.TyperCommand, "invoke", pressed)
    code, told = ended([name, *WORDS[name]], capsys, monkeypatch)
    assert code == 130 and told.startswith("autotune: stopped by Ctrl-C; ") and told.count("\n") == 1
    assert "run the same command again" in told or "stay in the cache" in told
    assert ("resume" in told) == (name in ("sweep", "tune", "campaign"))


@pytest.mark.quick
def test_a_recording_that_was_stopped_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sky_command, "_follow", pressed)
    example = Path(__file__).parents[2] / "docs" / "example" / "sky.toml"
    code, told = ended(["sky", str(example), "--out", str(tmp_path / "night")], capsys, monkeypatch)
    assert code == 130 and f"the recording is incomplete; remove {tmp_path}/night and run" in told.splitlines()[-1]


@pytest.mark.quick
def test_what_is_cut_has_dots_in_its_middle() -> None:
    assert [cut_middle("ABCDEFGHIJ", n) for n in (10, 7, 4, 2, 1, 0)] == [
        "ABCDEFGHIJ",
        "ABC..IJ",
        "A..J",
        "..",
        ".",
        "",
    ]
    told = ProgressText("best 1 us", "WGS=128,COARSEN=4", "; 3 failed")
    assert str(told) == "best 1 us WGS=128,COARSEN=4; 3 failed"
    assert told.within(30) == "best 1 us WGS=..EN=4; 3 failed"
    assert len(told.within(12)) == 12 and told.within(100) == str(told)


@pytest.mark.quick
def test_tables_are_whole_in_a_pipe_and_break_after_commas_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    config = "ALGORITHM=register,WGS=128,COARSEN=4"
    columns, rows = ("", "median", "config"), [("best", "1 us", config)]

    def printed(is_terminal: bool, **how: str) -> list[str]:
        file = io.StringIO()
        monkeypatch.setattr(
            console,
            "stdout",
            Console(file=file, width=40, soft_wrap=True, force_terminal=is_terminal, color_system=None),
        )
        print_table(columns, rows, **how)
        return file.getvalue().splitlines()

    whole = ["      median  config", f"best  1 us    {config}"]
    assert printed(False, below="config") == printed(False, cut="config") == printed(True) == whole
    assert printed(True, below="config") == ["      median", "best  1 us", "    ALGORITHM=register,WGS=128,COARSEN=4"]
    assert printed(True, cut="config") == ["      median  config", "best  1 us    ALGORITHM=re..28,COARSEN=4"]
    assert broken_at_commas(config, 20) == ["ALGORITHM=register,", "WGS=128,COARSEN=4"]


def test_words_of_the_final_round_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    report._print_relations({"best", "default"})
    assert capsys.readouterr().out == ""
    report._print_relations({"best", "same", "ambiguous"})
    lines = capsys.readouterr().out.split("\n")
    assert [line.split(" ")[0] for line in lines] == ["", "same", "ambiguous", ""]
