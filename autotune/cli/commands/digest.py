"""`autotune digest` stores the machine code digests of recorded trials, so that sources may be rewritten."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...records.folder import all_sweeps
from ...source.registry import named_kernels, recorded_kernel
from ...system.processes import n_cpus
from ..console import stderr, stdout
from .options import DefinitionsOption


def digest(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    kernel: DefinitionsOption = [],
    compile_processes: Annotated[
        int, typer.Option("--compile-processes", min=1, max=1024, help="Compiler processes. [default: one per CPU]")
    ] = n_cpus(),
) -> None:
    """Write down the machine code of recorded trials, before their templates are rewritten.

    New trials have the digest of theirs. This adds it to older ones, and to others for the compiler that is here: then
    `sweep` and `emit` see that a text which was rewritten means the same. No GPU is needed.
    """
    from ...validity.code_digests import digest as digest_sweep
    from ...validity.code_digests import pools

    named, total = named_kernels(kernel), [0, 0, 0]
    for pool, folders in pools(all_sweeps(paths), compile_processes):
        stderr.print(f"{len(folders)} sweeps on {pool.target.device.name}, compiled with {pool.compiler}", markup=False)
        for number, folder in enumerate(folders, 1):
            try:
                found = digest_sweep(folder, recorded_kernel(folder.about().content, named), pool)
            except UsageError as error:
                stderr.print(f"skipped {folder.path}: {error}", markup=False)
                continue
            total = [a + b for a, b in zip(total, (found.n_known, found.n_new, found.n_changed), strict=True)]
            if found.n_new:
                stderr.print(f"  {number} of {len(folders)}: {found.n_new} trials of {folder.path}", markup=False)
    stdout.print(
        f"digests      {total[1]} new, {total[0]} known, {total[2]} unavailable because their source has changed"
    )
