"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ...system.limits import Range


def in_range(allowed: Range) -> Callable[[float | None], float | None]:
    """Returns the callback that checks an option's number; typer's own limits let nan and inf pass."""

    def check(value: float | None) -> float | None:
        if value is not None and not allowed.holds(value):
            raise typer.BadParameter(f"{value} must be {allowed}")
        return value

    return check


KernelOption = Annotated[str, typer.Option("--kernel", help="A kernel's name, or the path of its definition (x.py).")]
DefinitionsOption = Annotated[
    list[str],
    typer.Option(
        "--kernel", help="Path of the definition (x.py) of a recorded kernel that is not installed. Repeatable."
    ),
]
ProblemOption = Annotated[
    list[str],
    typer.Option(
        "--problem", help="taps=256,decimation=16,...: other fields keep their defaults, or follow. Repeatable."
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option("--device", help="auto (a GPU if there is one), host, cuda, cuda:1, simulated, or an installed one."),
]
ConfigOption = Annotated[str, typer.Option("--config", help="A complete configuration: ALGORITHM=register,WGS=128,...")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ResultsOption = Annotated[Path, typer.Option("--results", help="The folder for recorded sweeps.")]
BeginOption = Annotated[
    Path | None,
    typer.Option(
        "--begin-from",
        help="A cache of Kernel Tuner, or T4 results: its fastest configs are tried first, and its times do not count.",
    ),
]
DashboardOption = Annotated[
    Path | None,
    typer.Option("--dashboard", help="A journal to write, which `optuna-dashboard FILE` shows while the sweep runs."),
]
