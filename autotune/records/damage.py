"""Errors and warnings for records that are damaged, come from a later version, or cannot be written."""

import logging
from pathlib import Path

from ..core.errors import UsageError
from ..core.schema import plain

log = logging.getLogger("autotune")


class Damaged(UsageError):
    """A file of a record cannot be used; the message names it and says why."""


class NewerFormat(Damaged):
    """A later version wrote this file of a record."""


def tell(what: str) -> None:
    """Warns once, in one line, that a part of a record is ignored."""
    if what not in _told:
        _told.add(what)
        log.warning("%s", " ".join(plain(what).split()))


_told: set[str] = set()


def cannot_write(path: Path, error: OSError) -> UsageError:
    """Returns the error for a record that cannot be written; its recorded content stays as it is."""
    return UsageError(
        f"cannot write {path}: {error.strerror or error}. What was recorded before is safe; "
        "make room or choose another place with --results, and start again to continue"
    )
