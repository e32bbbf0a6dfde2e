"""Writes files atomically, so that readers see the whole file or none of it; and reads files, but no pipes."""

import errno
import os
import stat
import time
from pathlib import Path
from typing import IO, Any


def write_whole(path: Path, data: bytes, mode: int | None = None) -> Path:
    """Write ``data`` atomically and return the path; if that fails, the old content stays.

    ``mode``: the file's permissions; None: as the user's umask has it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        temporary.write_bytes(data)
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def opened(path: Path, mode: str) -> IO[Any]:
    """Returns a file, opened as ``open`` does it.

    Raises:
        OSError: also for a pipe, a socket or a device: opening one may wait for ever, and reading it never end.
    """
    file = open(path, mode, opener=_without_waiting)  # noqa: SIM115  (the caller closes it)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, and no file", str(path))


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK, 0o666)


def content_of(path: Path) -> bytes:
    """Returns what is in a file. Raises OSError as ``opened`` does."""
    with opened(path, "rb") as file:
        data: bytes = file.read()
    return data
