"""The output files of a service: one for each engine, and empty ones are removed."""

from itertools import count
from pathlib import Path
from typing import Any

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


def numbered(path: Path, number: int) -> Path:
    """Returns the file of the ``number``-th engine: x.h5, x-2.h5, x-3.h5; from 2 on, the next name that is free."""
    if number == 1:
        return path
    names = (path.with_stem(f"{path.stem}-{n}") for n in count(number))
    return next(each for each in names if not each.exists())
