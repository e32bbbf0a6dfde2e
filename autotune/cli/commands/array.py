"""`autotune array` drafts the file of an array from the recordings of its antennas."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...core.files import check_free, write_whole
from ...engines.files.array_draft import array_text
from ...engines.files.grouping import grouped
from ...engines.files.header_fields import parsed_header
from ...engines.jobs.inputs import recordings
from ..console import note, stdout
from .engine_options import HeaderOption


def array(
    paths: Annotated[list[Path], typer.Argument(help="Recordings of all antennas, or folders of recordings.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A new file, array.toml; its paths are relative to its folder. [default: stdout]"),
    ] = None,
    header: HeaderOption = [],
) -> None:
    """Draft the file of an array, array.toml. Edit it, and give it to `autotune correlate`.

    Pieces and scans of one antenna are joined in the order of time. A comment marks each field that a run or its
    output needs and that headers lack. Without --out, paths are relative to the current folder.
    """
    if out is not None:
        check_free(out)
    overrides = parsed_header(header)
    groups = grouped(recordings(paths, note), overrides, note)
    if not groups:
        raise UsageError("no recording can be opened")
    text = array_text(groups, Path() if out is None else out.parent, overrides)
    n_files = len({look.path for group in groups for look in group.looks})
    if out is None:
        stdout.print(text, markup=False, end="")
    else:
        write_whole(out, text.encode())
    lacking = sorted({error.field for group in groups for look in group.looks for error in look.lacking})
    more = f"; headers lack {', '.join(lacking)}" if lacking else ""
    note(f"{len(groups)} antennas of {n_files} files{more}")
    if out is not None:
        stdout.print(str(out), markup=False)
