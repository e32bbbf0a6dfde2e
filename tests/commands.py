"""The command line as tests type it: in a process of its own, or in this one, which costs half a second less."""

import logging
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import program


def autotune(*words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "autotune", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def ended(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The exit code of a command that goes wrong, and what it tells; it has no data."""
    monkeypatch.setattr(sys, "argv", ["autotune", *words])
    handler = signal.getsignal(signal.SIGINT)  # which a command that Ctrl-C ends gives up
    try:
        with pytest.raises(SystemExit) as end:
            program.main()
    finally:
        signal.signal(signal.SIGINT, handler)
    logging.disable(logging.NOTSET)  # as it was before `lookup`
    told = capsys.readouterr()
    assert "Traceback" not in told.err and told.out == "", told
    assert isinstance(end.value.code, int)
    return end.value.code, told.err


def typed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a command that goes well in this process."""
    monkeypatch.setattr(sys, "argv", ["autotune", *words])
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code in (0, None)
