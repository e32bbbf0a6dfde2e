"""What a command says when Ctrl-C ends it: one line of what stands and how to go on; its exit code is 130."""

import signal

import typer

from .console import note

RESUMES = "every trial that ended is recorded; run the same command again to resume"
STANDS = {
    "sweep": RESUMES,
    "tune": RESUMES,
    "campaign": RESUMES,
    "digest": "digests of the sweeps before this one are written; run the same command again to go on",
    "verify": "nothing is recorded; what was compiled is kept for the next time",
    "emit": "no package is half written; run the same command again",
    "export": "no file is half written; run the same command again",
    "report": "no page is half written; run the same command again",
    "replay": "records are as they were; run the same command again to start anew",
    **dict.fromkeys(
        ("channelise", "correlate"),
        "trials of --tune are recorded; remove an output that was begun, and run the same command again",
    ),
}
NOTHING = "nothing was changed; run the same command again"


def stopped(stands: str) -> typer.Exit:
    """Returns what ends a command that Ctrl-C stopped, after saying so and what ``stands``."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the next one ends the process without a word
    note(f"autotune: stopped by Ctrl-C; {stands}")
    return typer.Exit(130)
