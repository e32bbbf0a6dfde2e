"""The folder of the package's own templates."""

from importlib import import_module
from pathlib import Path

TEMPLATES = f"{(__package__ or '').rpartition('.')[0]}.templates"  # beside this room; in a checkout, beside autotune


def library_path() -> Path:
    """Returns the folder of the package's templates, from a checkout and from a wheel alike."""
    return Path(next(iter(import_module(TEMPLATES).__path__)))
