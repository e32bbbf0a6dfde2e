"""The command line: it parses words, calls the other rooms, and prints what they answer.

It imports every other room; ``api`` is beside it.
"""

import sys

try:
    from .program import app, main
except KeyboardInterrupt:  # the import takes half a second, in which a user may stop a command typed by mistake
    sys.stderr.write("autotune: stopped by Ctrl-C; nothing had begun\n")
    raise SystemExit(130) from None

__all__ = ["app", "main"]
