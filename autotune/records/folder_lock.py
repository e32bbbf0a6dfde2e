"""The lock of a sweep's folder: a lock on its trials.jsonl, which the kernel releases when the process ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..core.files import opened
from .damage import cannot_write
from .packed import TABLE
from .trial_log import TRIALS


@contextmanager
def locked(folder: Path, note: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock of ``folder``, so that one process writes at a time; ``note`` is told if it must wait.

    Raises:
        UsageError: when the folder cannot be written.
    """
    path = folder / TRIALS
    while True:
        with _lockable(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note(f"waiting: another process is at work in {folder}")
                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_same(file, path):  # else that process has packed the record
                yield
                if (folder / TABLE).exists() and path.exists() and not path.stat().st_size:
                    path.unlink()  # it was only there for the lock
                return


def is_at_work(folder: Path) -> bool:
    """Returns whether a process holds the lock. A sweep that starts during this call may report that it waits."""
    with suppress(OSError), opened(folder / TRIALS, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
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
