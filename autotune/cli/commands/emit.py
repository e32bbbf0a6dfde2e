"""`autotune emit` writes the winners as a package."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.units import counted
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
            help="At most this many configurations for each kernel and device: those with the least worst-case regret "
            "(`autotune portfolio` shows the cost). [default: every sweep's winner]",
        ),
    ] = None,
    kernel: DefinitionsOption = [],
    problems: Annotated[
        list[Path],
        typer.Option(
            "--for",
            help="A TOML list of problems without a record, as in a campaign's file: their configs are predicted and "
            "rendered now, so the package needs no Jinja2 for them. Repeatable.",
        ),
    ] = [],
) -> None:
    """Write the winners as an installable package. It needs NumPy and CuPy, and Jinja2 only to predict new problems."""
    from ...emit.writer import write_package as emit_package
    from ...runtime.wisdom import Wisdom

    written = emit_package(paths, out, portfolio, kernel, problems, stderr.print)
    wisdom = Wisdom.load(written / "wisdom.json")
    kernels = counted(len({each.kernel for each in wisdom.entries}), "kernel")
    held = f"{kernels}, {counted(len(wisdom.entries), 'problem')}, {counted(len(wisdom.devices()), 'device')}"
    stdout.print(f"wrote {written}: {held}; `import {out.name}` beside it, or `{pip_install(out)}`", markup=False)
