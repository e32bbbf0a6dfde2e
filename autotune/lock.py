"""One process measures on a device at a time: an advisory lock per piece of hardware, freed by the kernel at exit."""

import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from .cache import cache_dir

POLL_S = 0.2


@contextmanager
def device_lock(name: str, note: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of the device ``name``; while another process does, wait, after telling ``note`` who it is."""
    path = cache_dir("locks") / f"{name}.lock"
    with open(path, "a+") as file:
        if not _taken(file):
            note(f"waiting: the device is in use by {_holder(path)}")
            while not _taken(file):
                time.sleep(POLL_S)
        file.truncate(0)
        json.dump({"pid": os.getpid(), "command": " ".join(sys.argv), "since": datetime.now(UTC).isoformat()}, file)
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        return f"process {holder['pid']} ({holder['command']}) since {holder['since'][:19]} UTC"
    except (ValueError, KeyError, OSError):  # between its truncation and its writing
        return "another process"
