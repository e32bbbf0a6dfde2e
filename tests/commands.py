"""The command line as tests type it: in a process of its own, or in this one, which costs half a second less."""

import logging
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from autotune.cli import program

from .forked import Command
from .waiting import DEADLINE_S


def autotune(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """A command that has ended, in a process of its own. ``env``: its environment; None: the one of this process."""
    command = Command(*words, cwd=cwd, env=env)
    try:
        out, err = command.communicate(2 * DEADLINE_S)
    except subprocess.TimeoutExpired:  # whoever waits for its device should not wait for ever
        command.kill()
        raise
    return subprocess.CompletedProcess(command.args, command.wait(), out, err)


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
