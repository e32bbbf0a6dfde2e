"""The lock of a sweep's folder: a lock on its trials.jsonl, which the kernel releases when the process ends."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..core.errors import UsageError
from ..core.files import lock, opened
from .damage import cannot_write
from .packed import TABLE
from .trial_log import TRIALS

REMEDY = "choose a folder for records on another one by --results"


@contextmanager
def locked(folder: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock of ``folder``, so that one process writes at a time; ``note`` is told if it must wait.

    Raises:
        UsageError: when the folder cannot be written, or its file system has no locks.
    """
    path = folder / TRIALS
    while True:
        with _lockable(path) as file:
            if not lock(file.fileno(), folder, REMEDY):
                note(f"waiting: another process is at work in {folder}")
                lock(file.fileno(), folder, REMEDY, waits=True)
            if _is_same(file, path):  # else that process has packed the record
                yield
                if (folder / TABLE).exists() and path.exists() and not path.stat().st_size:
                    path.unlink()  # it was only there for the lock
                return


def is_at_work(folder: Path) -> bool:
    """Returns whether a process holds the lock. A sweep that starts during this call may report that it waits."""
    with suppress(OSError, UsageError), opened(folder / TRIALS, "rb") as file:
        return not lock(file.fileno(), folder, REMEDY, is_shared=True)
    return False


def _lockable(path: Path) -> IO[Any]:
    try:
        return opened(path, "ab")
    except OSError as error:
        raise cannot_write(path, error) from error


def _is_same(file: IO[Any], path: Path) -> bool:
    """Returns whether ``path`` is still the opened file."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    return False
