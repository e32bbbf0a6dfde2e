"""`autotune export`: recorded sweeps for other programs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...core.files import write_whole
from ...records.export import files, kernel_tuner, table
from ...records.folder import find_sweeps
from ...records.recorded import Recorded
from ..console import stderr, stdout


class Format(StrEnum):
    """What `--format` takes."""

    csv = "csv"
    parquet = "parquet"
    t4 = "t4"
    kernel_tuner = "kernel-tuner"


def export(
    path: Annotated[Path, typer.Argument(help="A recorded sweep, or a folder of them.")],
    format: Annotated[
        Format,
        typer.Option(
            "--format",
            help="csv, parquet: one table, one row per trial, in seconds. t4: a results and a metadata file per sweep. "
            "kernel-tuner: a cache file per sweep. The last two are in milliseconds.",
        ),
    ] = Format.csv,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="A file; for t4 and kernel-tuner also a folder, which several sweeps need. "
            "[default: stdout, for csv and for one kernel-tuner file]",
        ),
    ] = None,
) -> None:
    """Every trial, winners and failures alike, for other programs."""
    if format in (Format.csv, Format.parquet):
        return _table(path, format, out)
    sweeps = [Recorded.of(folder) for folder in find_sweeps(path)]
    contents = files.t4_files if format == Format.t4 else files.kernel_tuner_files
    if out is not None:
        return _tell(files.write_each(sweeps, out, contents))
    if format == Format.t4 or len(sweeps) > 1:
        n = f"{len(sweeps)} sweep{'s' if len(sweeps) > 1 else ''}"
        raise UsageError(f"--format {format} of {n} writes several files; name a folder for them with --out")
    stdout.file.write(kernel_tuner.cache(sweeps[0]) + "\n")


def _table(path: Path, format: Format, out: Path | None) -> None:
    if out is not None and out.is_dir():
        raise UsageError(f"{out} is a folder; --format {format} writes one file, such as {out / f'trials.{format}'}")
    if format == Format.csv:
        text = table.csv(path)
        if out is None:
            stdout.file.write(text)
        else:
            _tell([_written(out, text.encode())])
    elif out is None:
        raise UsageError("--format parquet is not text; name a file with --out, such as --out trials.parquet")
    else:
        _tell([_written(out, table.parquet(path))])


def _written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(path, data)


def _tell(written: list[Path]) -> None:
    more = f" and {len(written) - 1} more" if len(written) > 1 else ""
    stderr.print(f"wrote {written[0]}{more}", markup=False)
