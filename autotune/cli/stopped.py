"""The line that a command prints when Ctrl-C ends it: what is kept, and how to go on. The exit code is 130."""

import signal

import typer

from .console import note

RESUMES = "every trial that ended is recorded; run the same command again to resume"
STANDS = {
    "sweep": RESUMES,
    "tune": RESUMES,
    "campaign": RESUMES,
    "digest": "the digests of all sweeps before this one are written; run the same command again to go on",
    "pack": "every record is whole, packed or as it was; run the same command again to go on",
    "verify": "nothing is recorded; compiled variants stay in the cache",
    "emit": "no package is half written; run the same command again",
    "export": "no file is half written; run the same command again",
    "report": "no page is half written; run the same command again",
    **dict.fromkeys(
        ("channelise", "correlate"),
        "trials of --tune are recorded; remove the unfinished output, and run the same command again",
    ),
}
NOTHING = "nothing was changed; run the same command again"


def stopped(stands: str) -> typer.Exit:
    """Prints that Ctrl-C stopped the command and what ``stands``; returns the exit to raise, with code 130."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the process at once
    note(f"autotune: stopped by Ctrl-C; {stands}")
    return typer.Exit(130)
