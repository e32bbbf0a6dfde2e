"""The sinks of voltages and visibilities: files, whose suffixes choose the format, memory, and a picture."""

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

    def write(self, *data: object) -> None:
        """Drop the data."""

    def close(self) -> None:
        """Do nothing: no file is open."""


class TeeSink:
    """A sink that passes voltages or visibilities on to several sinks."""

    def __init__(self, *sinks: Any) -> None:
        self._sinks = sinks

    def write(self, *data: Any) -> None:
        """Write to each sink."""
        for sink in self._sinks:
            sink.write(*data)

    def close(self) -> None:
        """Close all sinks. The first error of one is raised after all are closed."""
        failed: list[UsageError] = []
        for sink in self._sinks:
            try:
                sink.close()
            except UsageError as error:
                failed.append(error)
        if failed:
            raise failed[0]


def voltage_sink(path: Path | None, info: VoltageInfo, keep: bool, tell: Tell) -> VoltageSink:
    """Returns a new file of voltages. Without a path it is memory if ``keep``, else a sink that drops them."""
    if path is None:
        return KeptVoltages() if keep else NullSink()
    sink: VoltageSink = formats.for_new(path, VOLTAGES).write(path, info, tell)
    return sink


def visibility_sink(path: Path | None, info: VisibilityInfo, keep: bool, tell: Tell) -> VisibilitySink:
    """Returns a new file of visibilities. Without a path it is memory if ``keep``, else a sink that drops them."""
    if path is None:
        return KeptVisibilities() if keep else NullSink()
    sink: VisibilitySink = formats.for_new(path, VISIBILITIES).write(path, info, tell)
    return sink


def kept(sink: VoltageSink) -> KeptVoltages | None:
    """Returns the sink if it keeps voltages in memory, else None."""
    return sink if isinstance(sink, KeptVoltages) else None


@contextmanager
def empty_removed(
    stack: ExitStack, paths: Sequence[Path | None], n_made: Callable[[], Sequence[int]]
) -> Iterator[None]:
    """Removes the files that this block made when it raises while they are empty: they would stop the next run.

    ``n_made`` returns the number of heaps or dumps in each file; none while there is no engine. ``stack`` closes the
    files; it is closed first.
    """
    existing = [path for path in paths if path is not None and path.exists()]
    try:
        yield
    except BaseException:
        with suppress(UsageError):
            stack.close()
        for path, n in zip(paths, n_made() or [0] * len(paths), strict=True):
            if path is not None and path not in existing and not n:
                remove(path)
        raise


def remove(path: Path) -> None:
    """Removes an empty output, which is a file or, in some formats, a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
