"""Temporary folders for the files of compilers; folders that killed processes left behind are removed.

A folder's name contains its machine, its process and the start time of this process. So the folder of a running process
is never removed: numbers of processes are used again, and containers and machines that share a folder have their own.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

LEFT_S = 30 * 86400.0
NAME = re.compile(r"autotune-([0-9a-f]{8})-(\d+)-(\d+)-\w+")  # machine, process, and its start time


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yields a folder of this process, and removes it with its content."""
    _clear_once(os.getpid())
    with tempfile.TemporaryDirectory(prefix=own_prefix(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def own_prefix() -> str:
    """Returns how the names of this process's folders begin."""
    return f"autotune-{_machine()}-{os.getpid()}-{_began(os.getpid())}-"


def clear_left(folder: Path) -> None:
    """Removes the folders in ``folder`` that this user's processes left when they ended, on this machine and in this
    container; those of others, such as of this machine before it booted, when they are LEFT_S old.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            found = NAME.fullmatch(path.name)
            with suppress(OSError):
                if found is None or (about := path.lstat()).st_uid != os.getuid() or not stat.S_ISDIR(about.st_mode):
                    continue
                is_here = found[1] == _machine()
                if found[3] != _began(int(found[2])) if is_here else time.time() - about.st_mtime > LEFT_S:
                    shutil.rmtree(path, ignore_errors=True)


@lru_cache(maxsize=1)
def _clear_once(process: int) -> None:
    clear_left(Path(tempfile.gettempdir()))


@lru_cache(maxsize=1)
def _machine() -> str:
    """Returns a digest of the boot and of the namespace of process numbers; processes outside it cannot be checked."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot}{os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:8]
    return "0" * 8


def _began(process: int) -> str:
    """Returns the start time of a process, in ticks since the boot; "0" if it does not exist, or without /proc."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    return "0"
