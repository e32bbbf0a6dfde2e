"""The output files of a service: one for each engine, and empty ones are removed."""

import os
from collections.abc import Iterator
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
    names = [path] * (number == 1)
    free = (each for each in chain(names, _further(path, max(2, number))) if not os.path.lexists(each))
    found = next(free)
    if number == 1 and found != path:
        tell(f"{path} exists, and stays: this engine writes {found.name}")
    return found


def _further(path: Path, first: int) -> Iterator[Path]:
    return (path.with_stem(f"{path.stem}-{n}") for n in count(first))
