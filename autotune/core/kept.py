"""Cached files, which are read back only if they are whole and this user wrote them.

The content of a cache is executed. So its folders and files are used only if they belong to this user (or to root) and
no other user may write them, and a file is used only if its content matches the facts beside it.
"""

import hashlib
import json
import logging
import os
import shlex
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from .errors import UsageError
from .files import write_whole

MOST_FOLDERS_LOST = 10  # one deletion of the cache removes a folder at most twice: itself, and with its parent
T = TypeVar("T")
NOTED_S = 600.0  # seconds between two updates of a file's time of use
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_log = logging.getLogger("autotune")
_told: set[Path] = set()


def make_folder(root: Path, kind: str) -> Path:
    """Returns the folder ``kind`` of the cache ``root``; creates it, for this user alone, if it is missing.

    Raises:
        UsageError: when another user could put files there; the message says what is wrong and how to fix it.
        OSError: when it cannot be created.
    """
    return despite_deletion(lambda: _checked_folder(root / kind))


def despite_deletion(make: Callable[[], T], most_lost: int = MOST_FOLDERS_LOST) -> T:
    """Returns the result of ``make``; calls it again, up to ``most_lost`` times, when a file it needs was deleted."""
    # FileExistsError: the folder existed, and was then deleted
    return retried(make, (FileNotFoundError, FileExistsError), most_lost)


def retried(make: Callable[[], T], errors: tuple[type[Exception], ...], n_again: int) -> T:
    """Returns the result of ``make``; calls it again, up to ``n_again`` times, where it raises one of ``errors``."""
    for _ in range(n_again):
        with suppress(*errors):
            return make()
    return make()


def _checked_folder(folder: Path) -> Path:
    _make(folder)
    own = folder.resolve(), folder.parent.resolve()
    for path in dict.fromkeys((*own, *own[0].parents, *own[1].parents)):
        if (why := _wrong_folder(path, own)) is not None:
            raise UsageError(f"the cache {folder} is not used, because what lies there is executed and {path} {why}")
    return folder


def _make(folder: Path) -> None:
    """Creates a folder of a cache, and the cache itself, for this user alone; parent folders get the usual mode."""
    if not folder.is_dir():
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)


def _wrong_folder(path: Path, own: tuple[Path, Path]) -> str | None:
    """Returns who else could put files there and what to do, or None. ``own``: the folder and the cache around it.

    In a sticky folder such as /tmp other users may add files but not move any, so only the last folder must not be one.
    """
    found, is_own_folder = path.stat(), path in own
    how, place = ("-R ", own[1]) if is_own_folder else ("", path)
    where = shlex.quote(str(place))
    remedy = "if you trust what is in it, or name another folder in AUTOTUNE_CACHE_DIR"
    if is_own_folder and not _is_mine(found):
        return f"belongs to user {found.st_uid}: chown {how}{os.geteuid()} {where} {remedy}"
    others_write = _has_owners() and found.st_mode & (OTHERS_WRITE if is_own_folder else stat.S_IWOTH)
    if others_write and (path == own[0] or not found.st_mode & stat.S_ISVTX):
        mode = f"{stat.S_IMODE(found.st_mode):o}"
        return f"may be written by others (mode {mode}): chmod {how}go-w {where} {remedy}"
    return None


def is_own(path: Path) -> bool:
    """Returns whether only this user or root can write the file ``path``; warns once if others can."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode):
        why = "it is not a regular file"
    elif not _is_mine(found):
        why = f"it belongs to user {found.st_uid}"
    elif found.st_mode & OTHERS_WRITE and _has_owners():
        why = f"others may write it (mode {stat.S_IMODE(found.st_mode):o})"
    else:
        return True
    if path not in _told:
        _told.add(path)
        _log.warning("%s in the cache is not used but made anew: %s", path, why)
    return False


def keep(path: Path, data: bytes, facts: Mapping[str, object]) -> None:
    """Writes ``data`` to ``path`` and its facts beside it; creates the folder again if it was deleted."""
    _make(path.parent)
    write_whole(path, data, mode=0o600)
    described = {**facts, "name": path.name, "content": hashlib.sha256(data).hexdigest()}
    sealed = {**described, "sha256": _seal(described)}
    write_whole(facts_path(path), json.dumps(sealed, indent=1).encode(), mode=0o600)


def take(path: Path) -> tuple[bytes, dict[str, Any]] | None:
    """Returns the data and facts that ``keep`` wrote; None if either is missing, damaged or not this user's."""
    facts = facts_of(path)
    if facts is None or not is_own(path):
        return None
    with suppress(OSError):
        data = path.read_bytes()
        if facts.pop("content", "") == hashlib.sha256(data).hexdigest():
            for used in (path, facts_path(path)):
                with suppress(OSError):  # the cache may be read-only
                    if time.time() - used.stat().st_mtime > NOTED_S:
                        os.utime(used)  # the least recently used files are deleted first
            return data, facts
    return None


def facts_of(path: Path) -> dict[str, Any] | None:
    """Returns the facts beside ``path`` as written; None if they are missing, damaged or may be another user's."""
    if not is_own(facts_path(path)):
        return None
    with suppress(OSError, ValueError):
        facts = json.loads(facts_path(path).read_bytes())
        if isinstance(facts, dict) and facts.pop("sha256", "") == _seal(facts) and facts.pop("name", "") == path.name:
            return facts
    return None


def facts_path(path: Path) -> Path:
    """Returns the path of the facts of a kept file."""
    return path.with_suffix(".json")


def _seal(facts: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _is_mine(found: os.stat_result) -> bool:
    return not _has_owners() or found.st_uid in (os.geteuid(), 0)


def _has_owners() -> bool:
    return hasattr(os, "geteuid")  # Windows stores permissions elsewhere
