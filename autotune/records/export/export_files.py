"""Writes the exported files of one or many sweeps."""

from collections.abc import Sequence
from pathlib import Path

from ...core.errors import UsageError
from ...core.files import check_free, write_whole
from ...core.units import counted
from ..paths import sweep_path
from ..record import SweepRecord
from .exporter import ExportFormat


def write_exports(
    sweeps: Sequence[SweepRecord], out: Path, format: ExportFormat, name: str, overwrite: bool = False
) -> list[Path]:
    """Writes the files of ``sweeps`` in the format called ``name``. Returns their paths.

    Raises:
        UsageError: when they cannot be written to ``out``, or one exists and may not be overwritten; then none is.
    """
    files = _table(sweeps, out, format, name) if format.is_table else _each(sweeps, out, format)
    for path in files:
        check_free(path, overwrite)
    for path, data in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
        except OSError as error:
            raise UsageError(f"{path}: it cannot be written: {error.strerror or error}") from error
    return list(files)


def export_text(sweeps: Sequence[SweepRecord], format: ExportFormat, name: str) -> str:
    """Returns the text of the only file of ``sweeps``, for stdout.

    Raises:
        UsageError: when there are several files, or the format is not text.
    """
    if not format.is_text:
        raise UsageError(f"--format {name} is not text; name a file with --out, such as --out trials.{name}")
    files = format.contents(sweeps) if format.is_table or len(sweeps) == 1 else {}
    if len(files) != 1:
        n = counted(len(sweeps), "sweep")
        raise UsageError(f"--format {name} writes several files for {n}; name a folder for them with --out")
    return next(iter(files.values())).decode()


def _table(sweeps: Sequence[SweepRecord], out: Path, format: ExportFormat, name: str) -> dict[Path, bytes]:
    if out.is_dir():
        raise UsageError(f"{out} is a folder; --format {name} writes one file, such as {out / f'trials.{name}'}")
    files = format.contents(sweeps)
    if len(files) != 1:
        raise UsageError(
            f"--format {name} is declared a table, but returns {len(files)} files; its module must return one"
        )
    return {out: next(iter(files.values()))}


def _each(sweeps: Sequence[SweepRecord], out: Path, format: ExportFormat) -> dict[Path, bytes]:
    """Returns the content of the files of every sweep.

    If there is one sweep and ``out`` ends in .json, the files are named after ``out`` and lie side by side. Otherwise
    ``out`` is a folder, created if missing, with the layout of recorded sweeps: <device>/<kernel>/<problem>...
    """
    is_file = out.suffix == ".json" and not out.is_dir()
    if (is_file or out.is_file()) and len(sweeps) > 1:
        raise UsageError(f"{out} is one file, and there are {len(sweeps)} sweeps: name a folder with --out")
    if out.is_file() and not is_file:
        raise UsageError(f"{out} is a file that does not end in .json; name a folder, or a file x.json, with --out")
    stems: dict[Path, SweepRecord] = {}
    for sweep in sweeps:
        stem = (
            out.with_suffix("")
            if is_file
            else sweep_path(out, sweep.device.name, sweep.kernel, sweep.about.problem_name)
        )
        if stem in stems:
            raise UsageError(
                f"{stems[stem].folder.path} and {sweep.folder.path} are sweeps of the same problem on the same device "
                "and would be written to the same files; export them one by one"
            )
        stems[stem] = sweep
    return {
        stem.with_name(stem.name + end): data
        for stem, sweep in stems.items()
        for end, data in format.contents([sweep]).items()
    }
