"""The output files of a service: one for each engine, and empty ones are removed."""

import os
from itertools import chain, count
from pathlib import Path
from typing import Any

from ..files.reading import Tell
from ..jobs.sinks import remove


class NewFile:
    """A file of voltages or visibilities, which is removed if it is empty when it is closed.

    Args:
        sink: the sink that writes the file.
    """

    def __init__(self, sink: Any, path: Path) -> None:
        self._sink, self._path, self._is_empty = sink, path, True

    def write(self, *data: Any) -> None:
        """Write voltages or visibilities, as the sink takes them."""
        self._sink.write(*data)
        self._is_empty = False

    def close(self) -> None:
        """Close the sink."""
        try:
            self._sink.close()
        finally:
            if self._is_empty:
                remove(self._path)


def numbered(path: Path, number: int, tell: Tell) -> Path:
    """Returns the file of the ``number``-th engine: x.h5, x-2.h5, x-3.h5, or the next name that is free.

    A service that was killed and begins again so goes on; ``tell`` takes a line about it.
    """
    further = (path.with_stem(f"{path.stem}-{n}") for n in count(max(2, number)))
    found = next(each for each in chain([path] * (number == 1), further) if not os.path.lexists(each))
    if number == 1 and found != path:
        tell(f"{path} exists, and stays: this engine writes {found.name}")
    return found
