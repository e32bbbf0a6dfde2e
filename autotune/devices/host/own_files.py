"""Compiles files of this package for the host, once: each is kept in the cache, and used while it is intact."""

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
    """Returns the shared library that ``text`` compiles to, from the cache if it is there.

    ``name``: what its file's name begins with. ``options``: all that the compiler is told, the language (``-x``) last.
    ``source``: what identifies the library, with the compiler and the options: ``text``, or a digest of what that
    includes.

    Raises:
        UsageError: when there is no compiler, or it cannot make it.
    """
    compiler = find_compiler()
    path = cache_dir("host") / f"{name}-{text_digest(compiler.key, source, *options)}.so"
    if not is_whole(path):
        keep_compiled([*compiler.command, *options, "-"], text, path)
    return path


def is_whole(path: Path) -> bool:
    """Returns whether a shared file is intact; its megabytes are read again only when it has changed."""
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
    """Runs ``command``, a compiler's, with ``text`` as its input, and keeps what it makes at ``path``.

    Raises:
        UsageError: when it fails; says what the compiler wrote.
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
