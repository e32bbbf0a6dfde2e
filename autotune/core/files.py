"""Writes files atomically, so that readers see a whole file or none; and reads regular files, never pipes."""

import errno
import os
import stat
import time
from pathlib import Path
from typing import IO, Any


def write_whole(path: Path, data: bytes, mode: int | None = None, is_durable: bool = False) -> Path:
    """Writes ``data`` atomically and returns the path; if that fails, the old content stays.

    ``mode``: the file's permissions; None: the user's umask decides. ``is_durable``: it is on the disk afterwards.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        temporary.write_bytes(data)
        if is_durable:
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def opened(path: Path, mode: str) -> IO[Any]:
    """Opens a regular file as ``open`` does, and returns it.

    Raises:
        OSError: also for a pipe, a socket or a device, where opening might block and reading might never end.
    """
    file = open(path, mode, opener=_without_waiting)  # noqa: SIM115  (the caller closes it)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, and no file", str(path))


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK, 0o666)


def content_of(path: Path) -> bytes:
    """Returns the content of a file. Raises OSError as ``opened`` does."""
    with opened(path, "rb") as file:
        data: bytes = file.read()
    return data
