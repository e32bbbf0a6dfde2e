"""Compiles this package's own files for the host, once; the results stay in the cache, and are used while intact."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ...core.errors import UsageError, clipped
from ...core.kept import keep, take
from ...system.cache import cache_dir
from ...system.temporary import temporary_folder
from .toolchain import find_compiler, run_compiler

_seen: dict[Path, tuple[int, int, int]] = {}


def own_library(name: str, options: Sequence[str], text: str, source: str) -> Path:
    """Returns the shared library that is compiled from ``text``, from the cache if it is there.

    ``name``: the prefix of the file's name. ``options``: all options of the compiler, with the language (``-x``) last.
    ``source``: identifies the library, together with compiler and options: ``text``, or a digest of its includes.

    Raises:
        UsageError: if there is no compiler, or the compile fails.
    """
    compiler = find_compiler()
    path = cache_dir("host") / f"{name}-{text_digest(compiler.key, source, *options)}.so"
    if not is_whole(path):
        keep_compiled([*compiler.command, *options, "-"], text, path)
    return path


def is_whole(path: Path) -> bool:
    """Returns whether a shared file is intact; the file, of megabytes, is read again only after a change."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    identity = found.st_ino, found.st_size, found.st_mtime_ns
    if _seen.get(path) != identity:
        if take(path) is None:
            return False
        _seen[path] = identity
    return True


def keep_compiled(command: Sequence[str | Path], text: str | None, path: Path) -> None:
    """Runs a compiler's ``command`` with ``text`` as its input, and keeps the result at ``path``.

    Raises:
        UsageError: if the command fails; the message has the compiler's output.
    """
    with temporary_folder() as folder:
        made = folder / path.name
        outcome = run_compiler([*command, "-o", made], text)
        if outcome.code != 0:
            raise UsageError(f"{command[0]} cannot compile files of autotune itself: {clipped(outcome.errors)}")
        keep(path, made.read_bytes(), {})


def text_digest(*parts: str) -> str:
    """Returns 16 hexadecimal digits that depend on all ``parts`` and their order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
