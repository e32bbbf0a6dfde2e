"""`autotune emit`."""

from pathlib import Path
from typing import Annotated

import typer

from ...system.shell import pip_install
from ..console import stdout
from .options import DefinitionsOption


def emit(
    paths: Annotated[list[Path], typer.Argument(help="Recorded sweeps, or folders of them.")],
    out: Annotated[Path, typer.Option("--out", help="The package's folder; its name is the package's name.")],
    portfolio: Annotated[
        int | None,
        typer.Option(
            "--portfolio",
            min=1,
            help="At most so many configurations for each kernel and device, those with the least worst-case regret "
            "(`autotune portfolio` shows what that costs). [default: every sweep's winner]",
        ),
    ] = None,
    kernel: DefinitionsOption = [],
) -> None:
    """Write the winners as an installable package that needs only NumPy and CuPy."""
    from ...emit.writer import write_package as emit_package

    written = emit_package(paths, out, portfolio, kernel)
    stdout.print(f"wrote {written}: `import {out.name}` beside it, or `{pip_install(out)}`", markup=False)
