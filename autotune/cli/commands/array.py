"""`autotune array`: begins the file of an array, of the recordings of its antennas."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...engines.files.array_draft import array_text
from ...engines.files.grouping import grouped
from ...engines.jobs.inputs import recordings
from ..console import note, stdout
from .engine_options import HeaderOption, header_of


def array(
    paths: Annotated[list[Path], typer.Argument(help="Recordings of all antennas, or folders of recordings.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A new file, array.toml, from whose folder on paths are. [default: stdout]"),
    ] = None,
    header: HeaderOption = [],
) -> None:
    """Begin the file of an array, array.toml, to be edited and given to `autotune correlate`.

    The pieces and scans of an antenna are put together, in the order of time. A comment stands where headers lack what
    a run or its output needs. Without --out paths begin at this folder.
    """
    if out is not None and out.exists():
        raise UsageError(f"{out}: it exists; give another name, or remove it")
    given = header_of(header)
    groups = grouped(recordings(paths, note), given, note)
    if not groups:
        raise UsageError("there is no recording that can be opened")
    text = array_text(groups, Path() if out is None else out.parent, given)
    n_files = len({look.path for group in groups for look in group.looks})
    if out is None:
        stdout.print(text, markup=False, end="")
    else:
        out.write_text(text, encoding="utf-8")
    lacking = sorted({error.field for group in groups for look in group.looks for error in look.lacking})
    more = f"; headers lack {', '.join(lacking)}" if lacking else ""
    note(f"{len(groups)} antennas of {n_files} files{more}")
    if out is not None:
        stdout.print(str(out), markup=False)
