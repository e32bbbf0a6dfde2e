"""Prints data and tables to stdout, and formats numbers for them."""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rich.console import Console

LEAST_CELL = 24  # columns that are worth having for what is cut
stdout = Console(soft_wrap=True, highlight=False)
stderr = Console(stderr=True, soft_wrap=True, highlight=False)


def whole_streams() -> None:
    """Open to /dev/null those of stdin, stdout and stderr that this process was started without.

    Otherwise files that it opens would take their descriptors.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, f"__{name}__") is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            stream = os.fdopen(number, "r" if number == 0 else "w", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


@contextmanager
def only_data() -> Iterator[None]:
    """Let only ``stdout`` of this module write to standard output in this context.

    What a definition prints, through Python or to the file descriptor, goes to standard error.
    """
    python_stdout: TextIO = sys.stdout
    if python_stdout is not sys.__stdout__:  # something in this process captures the output
        yield
        return
    python_stdout.flush()
    data = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    # Characters that the encoding lacks are escaped: PYTHONIOENCODING may be ascii, and a path need not be UTF-8.
    with open(data, "w", encoding=python_stdout.encoding, errors="backslashreplace") as file:
        stdout.file = file
        try:
            yield
        finally:
            os.dup2(data, 1)
            sys.stdout = stdout.file = python_stdout


def seconds(value: float | None) -> str:
    """Formats a time with four digits in a suitable unit."""
    if value is None:
        return "-"
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if value >= s), ("us", 1e-6))
    return f"{value / size:.4g} {unit}"


def percent(value: float | None) -> str:
    """Formats a share as a percentage, or "-" for None."""
    return "-" if value is None else f"{100 * value:.1f} %"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], cut: str = "", below: str = "") -> None:
    """Prints columns as wide as their longest cell. Lines are whole in a pipe, and on a terminal that is wide enough.

    Otherwise, on a terminal, cells of the column ``cut`` are shortened in the middle; those of the last column, if it
    is ``below``, go to lines of their own, which end after commas.
    """
    lines = [tuple(columns), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    too_much = sum(widths) + 2 * (len(widths) - 1) - stdout.width if stdout.is_terminal else 0
    if too_much > 0 and cut in columns:
        at = columns.index(cut)
        widths[at] = max(min(widths[at], LEAST_CELL), widths[at] - too_much)
        lines = [(*line[:at], middle(line[at], widths[at]), *line[at + 1 :]) for line in lines]
    is_below = too_much > 0 and columns[-1] == below and below != ""
    for line in lines:
        cells = line[:-1] if is_below else line
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)).rstrip()
        stdout.print(text, markup=False, style="bold" if line is lines[0] else None)
        if is_below and line is not lines[0]:
            for part in broken_at_commas(line[-1], stdout.width - 4):
                stdout.print(f"    {part}", markup=False)


def middle(text: str, width: int) -> str:
    """Returns ``text`` in at most ``width`` characters: what is too long has .. in place of its middle."""
    if len(text) <= width:
        return text
    n = max(0, width - 2)
    return text[: n - n // 2] + ".."[: max(0, width)] + text[len(text) - n // 2 :]


def broken_at_commas(text: str, width: int) -> list[str]:
    """Returns ``text`` in lines of at most ``width`` characters that end after commas, where there are any."""
    lines = [""]
    for part in re.split("(?<=,)", text):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return lines


def print_json(value: object) -> None:
    """Prints JSON to stdout."""
    json.dump(value, stdout.file, indent=2, default=_plain)
    stdout.file.write("\n")


def _plain(value: object) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
