"""Prints progress to stderr (a live bar on a terminal, plain lines otherwise) and tables to stdout."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ..core.errors import Status
from ..trial.row import Trial

LINE_EVERY_S = 5.0  # between plain progress lines
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


class ConsoleProgress:
    """Shows a sweep's progress on stderr. ``clock`` names the clock of its times ("GPU time", "host time")."""

    def __init__(self, clock: str) -> None:
        self.clock = clock
        self._bar: Bar | None = None
        self._total = self._n_before = 0
        self._began = time.monotonic()
        self._last_line = 0.0
        self._failed = 0

    def note(self, text: str) -> None:
        stderr.print(text, markup=False)

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        self.note(title + (f"; {n_done} trials already recorded" if n_done else ""))
        self._total, self._n_before, self._began = n_total, n_done, time.monotonic()
        if stderr.is_terminal:
            columns = (
                BarColumn(24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, TextColumn("{task.description}", markup=False), console=stderr)
            self._bar.add_task("", total=n_total, completed=n_done)
            self._bar.start()

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        self._failed += trial.status != Status.MEASURED
        text = f"best {seconds(best.median_s)} {best.config}" if best else "no config timed yet"
        text += f"; {self._failed} failed" if self._failed else ""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=n_done, description=text)
        elif time.monotonic() - self._last_line > LINE_EVERY_S or n_done == self._total:
            self._last_line = time.monotonic()
            self.note(f"  trial {n_done} of {self._total}: {text}{self._left(n_done)}")

    def _left(self, n_done: int) -> str:
        """Returns the time that the remaining trials take at the rate of this run."""
        passed_s, n_new = time.monotonic() - self._began, n_done - self._n_before
        return f"; {seconds(passed_s / n_new * (self._total - n_done))} left" if n_new and n_done < self._total else ""

    def finalists(self, n: int) -> None:
        self._stop()
        self.note(f"final round: measuring the best {n} configs again, interleaved")

    def end(self, counts: Mapping[str, int]) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def seconds(value: float | None) -> str:
    """Formats a time with four digits in a suitable unit."""
    if value is None:
        return "-"
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if value >= s), ("us", 1e-6))
    return f"{value / size:.4g} {unit}"


def percent(value: float | None) -> str:
    """Formats a share as a percentage, or "-" for None."""
    return "-" if value is None else f"{100 * value:.1f} %"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints columns as wide as their longest cell. Lines are not wrapped: a terminal may, but a pipe must not."""
    lines = [tuple(columns), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        stdout.print(text, markup=False, style="bold" if line is lines[0] else None)


def print_json(value: object) -> None:
    """Prints JSON to stdout."""
    json.dump(value, stdout.file, indent=2, default=_plain)
    stdout.file.write("\n")


def _plain(value: object) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
