"""Files that appear whole or not at all, whoever else writes or reads them."""

import os
import time
from pathlib import Path


def write_whole(path: Path, data: bytes, mode: int | None = None) -> Path:
    """``data`` or, when the disk is full or the process is killed, what was there before; the path again.

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
