"""Writes files atomically, so that readers see a whole file or none; and reads regular files, never pipes."""

import errno
import os
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import UsageError

MOST_TEXT = 1 << 26  # bytes of a file that people write
PIECE = 1 << 20
UNZIPPED, MOST_TIMES = 1 << 26, 100


def write_whole(path: Path, data: bytes, mode: int | None = None, is_durable: bool = False) -> Path:
    """Writes ``data`` atomically and returns the path; if that fails, the old content stays, and the error names it.

    ``mode``: the file's permissions; None: the user's umask decides. ``is_durable``: it is on the disk afterwards.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        with named_errors(path):
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


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Lets each OSError of the block be of ``path``, and a full disk's have its number, which NumPy leaves out."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise OSError(errno.ENOSPC, f"it cannot be stored whole, {error}", str(path)) from error
        error.filename, error.filename2 = str(path), None
        raise


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


def content_of(path: Path, most: int | None = None) -> bytes:
    """Returns the content of a file. Raises OSError as ``opened`` does, and for a file of more than ``most`` bytes."""
    with opened(path, "rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        if most is not None and n_bytes > most:
            raise OSError(errno.EFBIG, f"it has {n_bytes} bytes, and such a file has at most {most}", str(path))
        data: bytes = file.read() if most is None else file.read(most)
    return data


def unzipped(data: bytes, most: int) -> bytes:
    """Returns what gzip has compressed; of a file that was cut off, the part that exists.

    Raises:
        OSError: for more than ``most`` bytes, of which none is kept before they are counted; for more than UNZIPPED
            that are MOST_TIMES as many as they were, which no measurements are.
        zlib.error: when it is damaged.
    """
    counting, n_bytes, rest = zlib.decompressobj(wbits=31), 0, data
    while rest and n_bytes <= most:
        n_bytes += len(counting.decompress(rest, PIECE))
        rest = counting.unconsumed_tail
        if n_bytes > max(UNZIPPED, MOST_TIMES * (len(data) - len(rest))):
            raise OSError(errno.EFBIG, f"it was more than {MOST_TIMES} times as long before it was packed")
    if n_bytes > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes when it is unpacked")
    return zlib.decompressobj(wbits=31).decompress(data)


def lock(file: int, where: object, remedy: str, *, waits: bool = False, is_shared: bool = False) -> bool:
    """Locks an open file until it is closed, also by the end of the process; returns whether the lock was free.

    ``waits``: until it is free, so that the answer is True.

    Raises:
        UsageError: when the file system has no locks; it names the folder ``where`` and says what to do.
    """
    import fcntl  # Windows has none, and packages work there

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        why = f"the file system of {where} has no locks (flock: {error.strerror})"
        raise UsageError(f"{why}: {remedy}, or mount it with locks, as Lustre by -o flock") from error
    return True


def check_free(path: Path, overwrite: bool = False) -> Path:
    """Returns ``path`` if nothing is there; with ``overwrite``, also if a regular file is there.

    Raises:
        UsageError: when something is there, which is never overwritten unasked.
    """
    if path.is_file() and overwrite:
        return path
    if os.path.lexists(path):
        more = ", or replace it by --overwrite" if path.is_file() else ""
        raise UsageError(f"{path}: it exists; give another name, remove it{more}")
    return path
