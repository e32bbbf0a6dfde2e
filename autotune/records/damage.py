"""Errors and warnings about records that are damaged, of a later version, or cannot be written."""

import logging
from pathlib import Path

from ..core.errors import UsageError
from ..core.schema import plain

log = logging.getLogger("autotune")


class Damaged(UsageError):
    """A file of a record that cannot be used: the message names it and says why."""


class NewerFormat(Damaged):
    """A file of a record that a later version wrote."""


def tell(what: str) -> None:
    """Warn once, in one line, that a part of a record is left out."""
    if what not in _told:
        _told.add(what)
        log.warning("%s", " ".join(plain(what).split()))


_told: set[str] = set()


def cannot_write(path: Path, error: OSError) -> UsageError:
    """Returns the error for a record that cannot be written; nothing that was recorded is touched."""
    return UsageError(
        f"cannot write {path}: {error.strerror or error}. What was recorded before is safe; "
        "make room or choose another place with --results, and start again to continue"
    )
