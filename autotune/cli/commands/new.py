"""`autotune new` writes the files of a new kernel."""

from pathlib import Path
from typing import Annotated

import typer

from ...core.schema import plain
from ...system.shell import command
from ..console import stdout


def new(
    name: Annotated[str, typer.Argument(help="The kernel's name: lower-case letters, digits and _.")],
    out: Annotated[Path, typer.Option("--out", help="The folder for its two files.")] = Path("."),
) -> None:
    """Write a kernel that works, a vector addition, as a start for your own."""
    from ...source.starter import write_starter

    definition, template = write_starter(name, out)
    at, beside = plain(str(definition)), plain(str(template))
    stdout.print(f"wrote        {at}: the problem, the parameters, and the reference", markup=False)
    stdout.print(f"             {beside}: the CUDA source", markup=False)
    verify = command("autotune", "verify", "--kernel", definition, "--device", "host", "--all")
    stdout.print(f"next         {plain(verify)}", markup=False)
