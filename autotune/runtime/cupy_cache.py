"""A folder for CuPy's kernels where a home cannot be written: in containers, for services, on some clusters.

CuPy makes ``~/.cupy`` when it is imported, and cannot be imported without. Nothing here needs what it keeps there.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "CUPY_CACHE_DIR"  # CuPy's own


def settle_cupy_cache() -> None:
    """Names a temporary folder to CuPy, and to processes that start from here, if its own cannot be made."""
    if VARIABLE in os.environ or _can_be_made(Path(os.path.expanduser("~/.cupy/kernel_cache"))):
        return
    folder = tempfile.mkdtemp(prefix="autotune-cupy-")
    os.environ[VARIABLE] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _can_be_made(folder: Path) -> bool:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return False
    if there == folder:
        return True
    try:
        os.rmdir(tempfile.mkdtemp(dir=there))  # /proc and the like say that they can be written
    except OSError:
        return False
    return True
