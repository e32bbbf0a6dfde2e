"""Writes files atomically: readers see the whole file or none of it."""

import os
import time
from pathlib import Path


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
