"""Ctrl-C while the command starts. It imports for most of a second, in which Python would show a traceback."""

import signal
import sys


def end_quietly() -> None:
    """Let Ctrl-C end this process at once if it starts the command, until ``interrupts`` is called."""
    first, words = "".join(sys.argv[:1]), ["", *sys.orig_argv]
    option = words[words.index("autotune") - 1] if "autotune" in words[1:] else ""
    is_command = first.endswith("/autotune") or (first == "-m" and option[:1] == "-" and option[-1:] == "m")
    if is_command and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, which the command line handles."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
