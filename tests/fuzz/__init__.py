"""Damaged records, damaged packages and senseless command lines: `python -m tests.fuzz --help`.

Each run has a time limit; it may end with 0, 1 or 2 and a message, never with a traceback, and writes in the folders
that it names only. Where a damaged input gives another answer than the whole one, something must be said on stderr.
"""
