"""Temporary folders for the files of compilers; folders that killed processes left behind are removed.

A folder's name contains its process and the start time of this process. So the folder of a running process is never
removed, even if a process number is reused.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

NAME = re.compile(r"autotune-([0-9a-f]{8})-(\d+)-(\d+)-\w+")  # machine, process, and its start time


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yields a folder of this process, and removes it with its content."""
    _clear_once(os.getpid())
    prefix = f"autotune-{_machine()}-{os.getpid()}-{_began(os.getpid())}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def clear_left() -> None:
    """Removes the folders of this user's ended processes on this machine."""
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).iterdir():
            found = NAME.fullmatch(path.name)
            if found is None or found[1] != _machine() or found[3] == _began(int(found[2])):
                continue
            with suppress(OSError):
                if path.lstat().st_uid == os.getuid() and path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)


@lru_cache(maxsize=1)
def _clear_once(process: int) -> None:
    clear_left()


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
