"""Gives CuPy a temporary cache folder where the home is read-only: in containers, for services, on some clusters.

CuPy creates ``~/.cupy`` when it is imported, and fails if it cannot. autotune does not use the files that CuPy keeps
there.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "CUPY_CACHE_DIR"  # the environment variable that CuPy reads


def settle_cupy_cache() -> None:
    """Points CuPy, here and in child processes, to a temporary folder if its own cannot be created."""
    if VARIABLE in os.environ or _can_be_made(Path(os.path.expanduser("~/.cupy/kernel_cache"))):
        return
    folder = tempfile.mkdtemp(prefix="autotune-cupy-")
    os.environ[VARIABLE] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _can_be_made(folder: Path) -> bool:
    nearest = next(each for each in (folder, *folder.parents) if each.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return False
    if nearest == folder:
        return True
    try:
        os.rmdir(tempfile.mkdtemp(dir=nearest))  # /proc and the like claim to be writable
    except OSError:
        return False
    return True
