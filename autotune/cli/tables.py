"""Prints tables and bars, and cuts or breaks lines that are too long for a terminal."""

import textwrap
from collections.abc import Sequence

from ..core.units import broken_at_commas
from . import console
from .console import cut_middle

EIGHTHS = " ▏▎▍▌▋▊▉█"
LEAST_CELL = 24  # columns that a shortened cell keeps at least


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], cut: str = "", below: str = "") -> None:
    """Prints columns as wide as their longest cell. In a pipe, and on a wide terminal, lines are printed whole.

    On a terminal that is too narrow, cells of the column ``cut`` are shortened in the middle. If the last column is
    ``below``, its cells go to lines of their own, which break after commas.
    """
    lines = [tuple(columns), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    too_much = sum(widths) + 2 * (len(widths) - 1) - console.stdout.width if console.stdout.is_terminal else 0
    if too_much > 0 and cut in columns:
        at = columns.index(cut)
        widths[at] = max(min(widths[at], LEAST_CELL), widths[at] - too_much)
        lines = [(*line[:at], cut_middle(line[at], widths[at]), *line[at + 1 :]) for line in lines]
    is_below = too_much > 0 and columns[-1] == below and below != ""
    for line in lines:
        cells = line[:-1] if is_below else line
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)).rstrip()
        console.stdout.print(text, markup=False, style="bold" if line is lines[0] else None)
        if is_below and line is not lines[0]:
            for part in broken_at_commas(line[-1], console.stdout.width - 4):
                console.stdout.print(f"    {part}", markup=False)


def wrapped(text: str, width: int) -> list[str]:
    """Returns ``text`` in lines of at most ``width`` characters, broken between words; a longer word stays whole."""
    indent = len(text) - len(text.lstrip())
    lines = textwrap.wrap(
        text,
        max(width, indent + LEAST_CELL),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [text]


def bar(share: float, width: int = 20) -> str:
    """Returns a bar that fills ``share`` of ``width`` characters, to an eighth of one."""
    eighths = round(8 * width * min(1.0, max(0.0, share)))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
