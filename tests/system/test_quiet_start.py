"""Ctrl-C while the command starts: it ends the process at once, and is otherwise as it was."""

import signal
import sys
from collections.abc import Iterator

import pytest

from autotune.system.quiet_start import end_quietly, interrupts


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("words", "original", "is_command"),
    [
        (["-m"], ["python", "-m", "autotune", "sweep"], True),
        (["/usr/bin/autotune", "sweep"], ["python", "/usr/bin/autotune", "sweep"], True),
        (["-m"], ["python", "-m", "pytest", "autotune"], False),
        (["-m"], ["python", "-Im", "autotune"], True),
        ([], ["embedded"], False),
        (["mine.py"], ["python", "mine.py"], False),
        ([""], ["python"], False),
    ],
)
def test_only_the_command_lets_ctrl_c_end_it_at_once(
    words: list[str], original: list[str], is_command: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(sys, "orig_argv", original)
    end_quietly()
    assert (signal.getsignal(signal.SIGINT) == signal.SIG_DFL) == is_command
    interrupts()
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


def test_a_process_that_ignores_ctrl_c_goes_on_to_do_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/autotune"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_quietly()
    interrupts()
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
