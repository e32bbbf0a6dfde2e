"""Where voltages and visibilities go: files by their names' ends, memory, and a picture besides."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from ..files import formats
from ..files.formats.interface import VISIBILITIES, VOLTAGES
from ..files.reading import Tell
from ..streams.in_memory import KeptVisibilities, KeptVoltages
from ..streams.visibilities import VisibilityInfo, VisibilitySink
from ..streams.voltages import VoltageInfo, VoltageSink


class NullSink:
    """A sink that keeps nothing."""

    def write(self, *made: object) -> None:
        """Drop what was made."""

    def close(self) -> None:
        """Do nothing: no file is open."""


class TeeSink:
    """A sink that gives what it takes to several others, of voltages or of visibilities."""

    def __init__(self, *sinks: Any) -> None:
        self._sinks = sinks

    def write(self, *made: Any) -> None:
        """Have each sink take it."""
        for sink in self._sinks:
            sink.write(*made)

    def close(self) -> None:
        """Close all of them, also after an error of one, which is raised at the end."""
        failed: list[UsageError] = []
        for sink in self._sinks:
            try:
                sink.close()
            except UsageError as error:
                failed.append(error)
        if failed:
            raise failed[0]


def voltage_sink(path: Path | None, info: VoltageInfo, keep: bool, tell: Tell) -> VoltageSink:
    """Returns a new file of voltages; or memory for them, if they are to be kept."""
    if path is None:
        return KeptVoltages() if keep else NullSink()
    sink: VoltageSink = formats.for_new(path, VOLTAGES).write(path, info, tell)
    return sink


def visibility_sink(path: Path | None, info: VisibilityInfo, keep: bool, tell: Tell) -> VisibilitySink:
    """Returns a new file of visibilities; or memory for them, if they are to be kept."""
    if path is None:
        return KeptVisibilities() if keep else NullSink()
    sink: VisibilitySink = formats.for_new(path, VISIBILITIES).write(path, info, tell)
    return sink


def kept(sink: VoltageSink) -> KeptVoltages | None:
    """Returns the memory that voltages went to, if they did."""
    return sink if isinstance(sink, KeptVoltages) else None


@contextmanager
def empty_removed(
    stack: ExitStack, paths: Sequence[Path | None], n_made: Callable[[], Sequence[int]]
) -> Iterator[None]:
    """Removes files that nothing has come into when an engine that runs in this block raises.

    ``n_made`` says of each how much has. ``stack``: what closes them; it is closed then.
    """
    try:
        yield
    except BaseException:
        with suppress(UsageError):
            stack.close()
        for path, n in zip(paths, n_made(), strict=True):
            if path is not None and not n:
                remove(path)
        raise


@contextmanager
def undone_on_error(stack: ExitStack, paths: Sequence[Path | None]) -> Iterator[None]:
    """Removes files that are made in this block when it raises: they hold nothing, and would be in the way.

    ``stack``: what closes them; it is closed then.
    """
    there = [path for path in paths if path is not None and path.exists()]
    try:
        yield
    except BaseException:
        with suppress(UsageError):
            stack.close()
        for path in paths:
            if path is not None and path not in there:
                remove(path)
        raise


def remove(path: Path) -> None:
    """Removes a file that was made here and holds nothing, or a folder, which some formats are."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
