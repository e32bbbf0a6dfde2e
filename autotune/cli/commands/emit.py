"""`autotune emit`."""

from pathlib import Path
from typing import Annotated

import typer

from ...system.shell import pip_install
from ..console import stderr, stdout
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
    problems: Annotated[
        list[Path],
        typer.Option(
            "--for",
            help="A TOML list of problems, as of a campaign, that nobody recorded: configs for them are predicted and "
            "rendered now, so that the package needs no Jinja2 for them. Can be repeated.",
        ),
    ] = [],
) -> None:
    """Write the winners as an installable package that needs only NumPy and CuPy, and predicts with Jinja2."""
    from ...emit.writer import write_package as emit_package

    written = emit_package(paths, out, portfolio, kernel, problems, stderr.print)
    stdout.print(f"wrote {written}: `import {out.name}` beside it, or `{pip_install(out)}`", markup=False)
