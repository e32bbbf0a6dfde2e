"""Ctrl-C while the command starts. It imports for most of a second, in which Python would show a traceback."""

import signal
import sys


def end_quietly() -> None:
    """Let Ctrl-C end this process at once if it starts the command, until ``interrupts`` is called."""
    words = [*sys.orig_argv, ""]
    is_module = sys.argv[:1] == ["-m"] and words[words.index("-m") + 1] == "autotune"
    if (is_module or sys.argv[0].endswith("/autotune")) and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, which the command line handles."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
