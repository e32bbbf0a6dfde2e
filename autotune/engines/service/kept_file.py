"""The file in which a service keeps what outlives its engines and itself: JSON with a checksum."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...core.errors import UsageError, one_line
from ...core.files import write_whole
from ...core.schema import Unsound, parse, seal, sealed
from ..files.reading import Tell

WRONG = (Unsound, UsageError, LookupError, TypeError, ValueError, AttributeError)  # damaged content raises these


class KeptFile:
    """Keeps what a service knows. It belongs to certain settings: with others it is not used, and is replaced.

    Args:
        about: a value of these settings, whose ``repr`` says what they are.
        tell: takes a line when the file is used, when it is not, and when it cannot be written.
    """

    def __init__(self, path: Path, about: object, tell: Tell) -> None:
        self._path, self._tell = path, tell
        self._about = sha256(repr(about).encode()).hexdigest()

    def restore(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Give the content to ``take``, which may raise what WRONG has; without a file it is not called."""
        try:
            content = sealed(parse(self._path.read_bytes()), needed=True)
            if content.pop("about") == self._about:
                take(content)
                said = "says what was measured, set or noticed before; remove it to begin without"
            else:
                said = "belongs to other settings: it is not used"
        except FileNotFoundError:
            return
        except (OSError, *WRONG) as error:
            said = f"is not used: {error}"
        self._tell(one_line(f"{self._path} {said}"))

    def write(self, content: dict[str, Any]) -> None:
        """Replace the content."""
        try:
            write_whole(self._path, json.dumps(seal({"about": self._about, **content})).encode(), is_durable=True)
        except OSError as error:
            self._tell(one_line(f"{self._path} cannot be written: {error.strerror}; a new start begins without it"))
