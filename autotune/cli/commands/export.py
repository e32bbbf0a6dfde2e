"""`autotune export` writes recorded sweeps for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from ...records.export import export_files, format_module
from ...records.folder import all_sweeps
from ...records.record import SweepRecord
from ..console import stderr, stdout
from .options import OverwriteOption


def export(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="csv, parquet: one table, one row per trial, times in seconds. t4: a results and a metadata file per "
            "sweep, in milliseconds. kernel-tuner: a cache file per sweep, in milliseconds. Or an installed format.",
        ),
    ] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="A file; for t4 and kernel-tuner also a folder, which is needed for several sweeps. "
            "[default: stdout, for csv and for one kernel-tuner file]",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write every trial, winners and failures alike, in a format for other programs."""
    chosen = format_module(format)
    sweeps = [SweepRecord.of(folder) for folder in all_sweeps(paths)]
    if out is None:
        stdout.file.write(export_files.export_text(sweeps, chosen, format))
        return
    written = export_files.write_exports(sweeps, out, chosen, format, overwrite)
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    stderr.print(f"wrote {written[0]}{more}", markup=False)
