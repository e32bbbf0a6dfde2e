"""`autotune report`: recorded sweeps as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...core.files import write_whole
from ...records.folder import all_sweeps
from ...records.record import SweepRecord
from ...report.page import comparison, page
from ...source.registry import named_kernels
from ..console import note
from .options import DefinitionsOption


def report(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    out: Annotated[Path, typer.Option("--out", help="The page to write, such as report.html; replaced if it exists.")],
    before: Annotated[
        list[Path],
        typer.Option(
            "--before",
            help="Compare with these records, made before: with another driver, compiler or template. Repeatable.",
        ),
    ] = [],
    kernel: DefinitionsOption = [],
) -> None:
    """Write one HTML page with pictures, which opens without a network: one sweep in full, or many side by side."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; a report is one file, such as --out {out / 'report.html'}")
    sweeps = _records(paths)
    html = comparison(_records(before), sweeps) if before else page(sweeps, named_kernels(kernel))
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, html.encode())
    note(f"wrote {out}: {len(sweeps)} sweep{'s' * (len(sweeps) > 1)}")


def _records(paths: list[Path]) -> list[SweepRecord]:
    return [SweepRecord.of(folder) for folder in all_sweeps(paths)]
