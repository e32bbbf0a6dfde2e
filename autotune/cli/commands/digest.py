"""`autotune digest` stores the machine code digests of recorded trials, so that sources may be rewritten."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import UsageError
from ...core.units import counted
from ...records.folder import all_sweeps
from ...source.registry import named_kernels, recorded_kernel
from ...system.processes import n_cpus
from ..console import stderr, stdout
from .options import DefinitionsOption


def digest(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    kernel: DefinitionsOption = [],
    compile_processes: Annotated[
        int,
        typer.Option("--compile-processes", min=1, max=1024, show_default="one per CPU", help="Compiler processes."),
    ] = n_cpus(),
) -> None:
    """Store digests of the machine code of recorded trials, before you edit their templates and again afterwards.

    New trials record their digest. This command adds it to older trials, and to trials of another compiler: then
    `sweep` and `emit` see whether an edited source still makes the same code. Run after the edit, it also stores
    digests of the finalists' present sources, for `emit` and `show` on machines without a compiler. It needs no GPU.
    """
    from ...validity.code_digests import add_digests as digest_sweep
    from ...validity.code_digests import pools

    named, total = named_kernels(kernel), [0, 0, 0, 0]
    for pool, folders in pools(all_sweeps(paths), compile_processes):
        stderr.print(
            f"{counted(len(folders), 'sweep')} on {pool.target.device.name}, compiled with {pool.compiler}",
            markup=False,
        )
        for number, folder in enumerate(folders, 1):
            try:
                digest_counts = digest_sweep(folder, recorded_kernel(folder.about().content, named), pool)
            except UsageError as error:
                stderr.print(f"skipped {folder.path}: {error}", markup=False)
                continue
            counts = digest_counts.n_known, digest_counts.n_new, digest_counts.n_changed, digest_counts.n_texts
            total = [a + b for a, b in zip(total, counts, strict=True)]
            if digest_counts.n_new or digest_counts.n_texts:
                what = f"{digest_counts.n_new} trials and {digest_counts.n_texts} sources"
                stderr.print(f"  {number} of {len(folders)}: {what} of {folder.path}", markup=False)
    stdout.print(
        f"digests      {total[1]} new, {total[0]} known, {total[2]} unavailable because their source has changed; "
        f"{total[3]} of present sources"
    )
