"""Where compiled things are kept between runs: one folder for each kind, safe to delete at any time."""

import os
from pathlib import Path

import platformdirs


def cache_dir(kind: str) -> Path:
    """The folder for ``kind`` ("host", "cuda"), made if need be; ``AUTOTUNE_CACHE_DIR`` moves all of them."""
    root = os.environ.get("AUTOTUNE_CACHE_DIR") or platformdirs.user_cache_dir("autotune")
    folder = Path(root) / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder
