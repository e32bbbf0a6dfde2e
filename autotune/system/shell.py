"""Formats commands for the user to type, quoted for a shell."""

import shlex
from pathlib import Path


def command(*words: str | Path) -> str:
    """Returns the words of a command, quoted where necessary; a path never looks like an option."""
    return shlex.join(
        f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in words
    )


def pip_install(folder: Path) -> str:
    """Returns the command that installs ``folder``; a bare word would be a name on the public index."""
    return command("pip", "install", str(folder) if folder.is_absolute() else f"./{folder}")


def definition_words(reference: str) -> tuple[str | Path, ...]:
    """Returns the words that name a kernel's definition in commands; () if it is installed."""
    return ("--kernel", Path(reference)) if "/" in reference else ()
