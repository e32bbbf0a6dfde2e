"""Caches compiled files between runs, in a folder for each kind; safe to delete at any time, and limited in size."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

from ..core.errors import UsageError
from ..core.kept import despite_deletion, make_folder
from .limits import BYTES, from_environment
from .temporary import clear_left, own_prefix

LIMIT_BYTES = 4 << 30  # limit for each kind; AUTOTUNE_CACHE_BYTES overrides it
IN_USE_S = 3600.0  # files used within the last hour stay, since a running sweep may need them


def cache_dir(kind: str) -> Path:
    """Returns the folder for ``kind`` ("host", "cubin"), created if missing; ``AUTOTUNE_CACHE_DIR`` moves all folders.

    Raises:
        UsageError: when it cannot be created, or other users could put files there.
    """
    root = Path(os.environ.get("AUTOTUNE_CACHE_DIR") or platformdirs.user_cache_dir("autotune"))
    try:
        return make_folder(root, kind)
    except OSError as error:
        remedy = "name a folder that you may write in AUTOTUNE_CACHE_DIR"
        raise UsageError(f"the cache {root / kind} cannot be made ({error.strerror}): {remedy}") from error


def prune(kind: str, limit_bytes: int | None = None) -> int:
    """Deletes the least recently used files of ``kind`` until they fit the limit. Returns the number of bytes deleted.

    Raises:
        UsageError: when AUTOTUNE_CACHE_BYTES is not a valid number.
    """
    limit = from_environment("AUTOTUNE_CACHE_BYTES", LIMIT_BYTES, BYTES) if limit_bytes is None else limit_bytes
    files = []
    for path in _paths(cache_dir(kind)):
        with suppress(OSError):  # another process may delete it first
            if path.is_file():
                files.append((path.stat().st_mtime, path.stat().st_size, path))
    excess = sum(size for _, size, _ in files) - int(limit)
    freed = 0
    for used_at, size, path in sorted(files):
        if freed >= excess or time.time() - used_at < IN_USE_S:
            break
        with suppress(OSError):
            path.unlink()
            freed += size
    return freed


@contextmanager
def scratch_dir() -> Iterator[Path]:
    """Yields a temporary folder; also removes folders that killed processes left behind."""
    clear_left(cache_dir("scratch"))
    folder = Path(despite_deletion(lambda: tempfile.mkdtemp(prefix=own_prefix(), dir=cache_dir("scratch"))))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _paths(folder: Path) -> list[Path]:
    """Returns the entries of a folder; [] if it was deleted."""
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []
