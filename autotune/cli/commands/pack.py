"""`autotune pack` turns records over to today's form: a table for each sweep, and each fact once."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.definition import AnyKernel
from ...core.errors import UsageError
from ...core.units import counted
from ...records.folder import SweepFolder, all_sweeps
from ...records.folder_lock import is_at_work, locked
from ...records.pack import pack as pack_record
from ...source.registry import named_kernels, recorded_kernel
from ..console import ProgressLine, ProgressText, note, stdout
from .options import DefinitionsOption


def pack(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    kernel: DefinitionsOption = [],
) -> None:
    """Pack the records of older versions, and of interrupted sweeps, in place.

    A sweep that ends is packed anyway. The command may be stopped at any time and started again. Damaged records, and
    those of sweeps that are running, are named and stay as they are.
    """
    named, folders = named_kernels(kernel), all_sweeps(paths)
    before, reasons = sum(map(_bytes_of, folders)), _reasons(folders)
    n_left = 0
    with ProgressLine(len(folders), 0) as line:
        for number, folder in enumerate(folders, 1):
            if is_at_work(folder.path):
                note(f"left {folder.path}: a sweep is running there")
                n_left += 1
                continue
            try:
                with locked(folder.path, note):
                    pack_record(folder, _definition(folder, named), reasons[folder.path.parent])
            except UsageError as error:
                note(f"left {error}")
                n_left += 1
            line.update(number, ProgressText("", folder.path.name))
    after = sum(map(_bytes_of, folders))
    stdout.print(
        f"packed       {counted(len(folders) - n_left, 'sweep')}, {n_left} left as they are; "
        f"{before / 1e6:.2f} MB before, {after / 1e6:.2f} MB now"
    )
    if n_left:
        raise typer.Exit(1)


def _definition(folder: SweepFolder, named: dict[str, AnyKernel]) -> AnyKernel | None:
    try:
        return recorded_kernel(folder.about().content, named)
    except UsageError:
        return None


def _reasons(folders: list[SweepFolder]) -> dict[Path, tuple[str, ...]]:
    """Returns folder of a kernel -> the reasons of constraints in all of its sweeps, so that these share one list."""
    reasons: dict[Path, dict[str, None]] = {}
    for folder in folders:
        about = folder.about()
        reasons.setdefault(folder.path.parent, {}).update(dict.fromkeys((*about.constraints, *about.refused)))
    return {path: tuple(own) for path, own in reasons.items()}


def _bytes_of(folder: SweepFolder) -> int:
    return sum(path.stat().st_size for path in folder.path.iterdir() if path.is_file())
