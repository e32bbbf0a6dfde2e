"""`autotune report` writes recorded sweeps as one HTML page."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...core.files import check_free, write_whole
from ...core.units import counted
from ...records.folder import FILES, SweepFolder, all_sweeps
from ...records.folder_lock import is_at_work
from ...records.record import SweepRecord
from ...report.page import comparison, is_page, page
from ...source.registry import named_kernels
from ..console import note
from .options import DefinitionsOption, OverwriteOption

LOOKS_EVERY_S = 2.0
QUIET_S = 6.0  # a campaign begins its next sweep within this time

Folders = list[SweepFolder]


def report(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    out: Annotated[
        Path, typer.Option("--out", help="The page to write, such as report.html. An older report is replaced.")
    ],
    before: Annotated[
        list[Path],
        typer.Option(
            "--before",
            help="Compare with these older records, made with another driver, compiler or template. Repeatable.",
        ),
    ] = [],
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Write the page anew while a sweep runs; it reloads itself in the browser.",
        ),
    ] = False,
    kernel: DefinitionsOption = [],
    overwrite: OverwriteOption = False,
) -> None:
    """Write one HTML page with pictures: one sweep in full, or many side by side. It opens without a network."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; a report is one file, such as --out {out / 'report.html'}")
    if out.suffix.lower() != ".html":
        page_path = out.with_name(f"{out.stem}.html")
        raise UsageError(
            f"{out} does not end in .html, and a report is a page of HTML: --out {page_path}. To make a PDF, open the "
            "page in a browser and print it to a file"
        )
    if not is_page(out):
        check_free(out, overwrite)
    kernels = named_kernels(kernel)

    def write(folders: Folders, renews: bool) -> None:
        sweeps = _records(folders)
        if before:
            html = comparison(_records(all_sweeps(before)), sweeps, renews=renews)
        else:
            html = page(sweeps, kernels, renews=renews)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, html.encode(errors="backslashreplace"))  # a path need not be UTF-8

    if watch:
        _wait_for_sweeps(paths)
        note(f"writing {out} while a sweep runs: open it in a browser; Ctrl-C stops")
        _watch(paths, write)
    else:
        write(all_sweeps(paths), False)
    note(f"wrote {out}: {counted(len(all_sweeps(paths)), 'sweep')}")


def _records(folders: Folders) -> list[SweepRecord]:
    return [SweepRecord.of(folder) for folder in folders]


def _wait_for_sweeps(paths: list[Path]) -> None:
    is_noted = False
    while True:
        try:
            all_sweeps(paths)
        except UsageError as nothing:
            if not is_noted:
                note(f"waiting: {nothing}")
            is_noted = True
            time.sleep(LOOKS_EVERY_S)
        else:
            return


def _watch(paths: list[Path], write: Callable[[Folders, bool], None]) -> None:
    """Writes the page after each change of the records, until no sweep runs for QUIET_S seconds, or Ctrl-C.

    The last page does not reload itself.
    """
    written: object = None
    at_work = time.monotonic()
    try:
        while True:
            folders = all_sweeps(paths)
            if any(is_at_work(folder.path) for folder in folders):
                at_work = time.monotonic()
            elif time.monotonic() - at_work > QUIET_S:
                return
            if (now := [(folder.path, *map(folder.stamp, FILES)) for folder in folders]) != written:
                write(folders, True)
                written = now
            time.sleep(LOOKS_EVERY_S)
    finally:
        write(all_sweeps(paths), False)
