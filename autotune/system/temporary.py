"""Folders in the temporary folder for what compilers write: those that killed processes left are cleared.

A folder's name has the process that made it and when that began, so that nobody's work is taken for what was left, not
even where a number of a process comes again.
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

NAME = re.compile(r"autotune-([0-9a-f]{8})-(\d+)-(\d+)-\w+")  # the machine, the process and when it began


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yields a folder of this process, and removes it with all that is in it."""
    _clear_once(os.getpid())
    prefix = f"autotune-{_machine()}-{os.getpid()}-{_began(os.getpid())}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def clear_left() -> None:
    """Removes the folders of this user's processes on this machine that have ended."""
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
    """Returns a digest of the boot and of the namespace that numbers of processes count in: others' are not known."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot}{os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:8]
    return "0" * 8


def _began(process: int) -> str:
    """Returns when a process began, in ticks since the boot; "0" where there is none, or no /proc says it."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    return "0"
