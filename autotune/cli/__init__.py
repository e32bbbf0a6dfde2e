"""The command line: it parses words, calls the other rooms, and prints what they answer.

It imports every other room; ``api`` is beside it.
"""

from .program import app, main

__all__ = ["app", "main"]
