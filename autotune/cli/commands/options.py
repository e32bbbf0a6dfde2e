"""Options that several commands share."""

from collections.abc import Callable
from typing import Annotated

import typer

from ...system.limits import Range

BOTH_WORDS = "a direction has two words, so it needs quotes: --phase-centre '22:00:00 +20:00:00'"
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def in_range(allowed: Range) -> Callable[[float | None], float | None]:
    """Returns a callback that checks an option's number. Typer's own limits would let nan and inf pass."""

    def check(value: float | None) -> float | None:
        if value is not None and not allowed.holds(value):
            raise typer.BadParameter(f"{value} must be {allowed}")
        return value

    return check


def integer(allowed: Range) -> Callable[[str], int]:
    """Returns what parses an option's integer; a text that is none gets the words of ``allowed``."""

    def parsed(text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise typer.BadParameter(f"{text} must be {allowed}") from None

    return parsed


def duration(text: str) -> float:
    """Returns the seconds of a text such as 300, 90s, 5m, 1.5h or 2d; raises BadParameter for another form."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS_S else (text, "s")
    try:
        return float(number) * UNITS_S[unit]
    except ValueError:
        raise typer.BadParameter(f"{text} must be seconds, or a time with a unit, as 90s, 5m, 1.5h or 2d") from None


KernelOption = Annotated[
    str,
    typer.Option("--kernel", metavar="NAME|x.py", help="A kernel's name, or the path of its definition (x.py)."),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
DefinitionsOption = Annotated[
    list[str],
    typer.Option(
        "--kernel",
        metavar="x.py",
        help="Path of the definition (x.py) of a recorded kernel that is not installed. Repeatable.",
    ),
]
ProblemOption = Annotated[
    list[str],
    typer.Option(
        "--problem",
        metavar="FIELD=VALUE,..",
        help="The sizes to tune for, such as taps=256,decimation=16. Other fields keep their defaults, or follow from "
        "the given ones. Repeat it for more problems.",
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option("--device", help="auto (a GPU if there is one), host, cuda, cuda:1, simulated, or an installed one."),
]
ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        metavar="NAME=VALUE,..",
        help="A complete configuration, such as ALGORITHM=register,WGS=128. [default: the kernel's default]",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
