"""Prints data to stdout and progress to stderr: a line with a bar on a terminal, plain lines elsewhere."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Column
from rich.text import Text

from ..core.errors import Status
from ..core.units import seconds_text
from ..records.trial import Trial

LINE_EVERY_S = 5.0  # seconds between plain progress lines
NARROW, NARROW_BAR, WIDE_BAR = 110, 10, 24  # columns; a terminal narrower than NARROW gets the shorter bar
LEAST_TEXT = 8  # columns
stdout = Console(soft_wrap=True, highlight=False, emoji=False)
stderr = Console(stderr=True, soft_wrap=True, highlight=False, emoji=False)


def whole_streams() -> None:
    """Opens stdin, stdout and stderr to /dev/null where this process was started without them.

    Otherwise a file that it opens later would take the descriptor of a missing stream.
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
    """Lets only this module's ``stdout`` write to standard output within the block.

    Output of a definition, through Python or to the file descriptor, goes to standard error.
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


@dataclass(frozen=True)
class ProgressText:
    """The text of a progress line. The config is shortened if the line is too long."""

    text: str = ""
    config: str = ""
    end: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.text, self.config))) + self.end

    def within(self, width: int) -> str:
        """Returns the text in at most ``width`` characters."""
        for_config = width - len(str(self)) + len(self.config)
        if self.config and for_config >= LEAST_TEXT:
            return str(ProgressText(self.text, cut_middle(self.config, for_config), self.end))
        return cut_middle(str(self), width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Returns the least and the most columns that the text takes: LEAST_TEXT, and all of it."""
        longest = len(str(self))
        return Measurement(min(LEAST_TEXT, longest), longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.within(options.max_width), no_wrap=True, end="")


class _LastStep(ProgressColumn):
    def __init__(self) -> None:
        super().__init__(Column(overflow="crop"))

    def render(self, task: Task) -> ProgressText:
        text: ProgressText = task.fields["told"]
        return text


class ProgressLine:
    """A progress line with a count.

    ``in_percent``: the count is a share, up to 1. ``transient``: the bar disappears at the end. Where stderr is not a
    terminal, a line is due every LINE_EVERY_S seconds and after the last step; ``at_once``: also after the first step.
    """

    def __init__(
        self,
        n_total: float | None,
        n_done: float = 0,
        *,
        in_percent: bool = False,
        transient: bool = False,
        at_once: bool = False,
    ) -> None:
        self._total, self._n_before = n_total, n_done
        self._began = time.monotonic()
        self._last_line = 0.0 if at_once else self._began
        self._bar: Bar | None = None
        if stderr.is_terminal:
            bar = BarColumn(NARROW_BAR if stderr.width < NARROW else WIDE_BAR)
            done = TaskProgressColumn() if in_percent else MofNCompleteColumn()
            times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(compact=True)
            self._bar = Bar(bar, done, *times, _LastStep(), console=stderr, transient=transient)
            self._bar.update(self._bar.add_task("", total=n_total, told=ProgressText()), completed=n_done)
            self._bar.start()

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def update(self, n_done: float, told: ProgressText, total: float | None = None) -> bool:
        """Shows that ``n_done`` steps are done. Returns whether a plain line is due; the caller prints it."""
        if total is not None:
            self._total = total
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=n_done, total=self._total, told=told)
            return False
        now = time.monotonic()
        if now - self._last_line <= LINE_EVERY_S and n_done != self._total:
            return False
        self._last_line = now
        return True

    def left(self, n_done: float) -> str:
        """Returns the estimated time left, as text, at the rate of this run; "" if the rate is not known."""
        passed_s, n_new = time.monotonic() - self._began, n_done - self._n_before
        if not n_new or self._total is None or n_done >= self._total:
            return ""
        return f"; {seconds_text(passed_s / n_new * (self._total - n_done))} left"

    def end(self) -> None:
        """Stops the bar; its last state stays on the terminal."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class ConsoleProgress:
    """Shows a sweep's progress on stderr."""

    def __init__(self) -> None:
        self._line: ProgressLine | None = None
        self._total = self._failed = 0

    def note(self, text: str) -> None:
        note(text)

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        self.note(title + (f"; {n_done} trials already recorded" if n_done else ""))
        self._total, self._line = n_total, ProgressLine(n_total, n_done, at_once=True)

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        self._failed += trial.status != Status.MEASURED
        failed = f"; {self._failed} failed" if self._failed else ""
        progress = ProgressText("no config timed yet", "", failed)
        if best:
            progress = ProgressText(f"best {seconds_text(best.median_s)}", str(best.config), failed)
        if self._line is not None and self._line.update(n_done, progress):
            self.note(f"  trial {n_done} of {self._total}: {progress}{self._line.left(n_done)}")

    def finalists(self, n: int) -> None:
        self.stop()
        self.note(f"final round: measuring the best {n} configs again, interleaved")

    def end(self, counts: Mapping[str, int]) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the line, also after an error: a bar that is not stopped leaves the cursor hidden."""
        if self._line is not None:
            self._line.end()
            self._line = None


def note(text: str) -> None:
    """Prints a line to stderr."""
    stderr.print(text, markup=False)


def cut_middle(text: str, width: int) -> str:
    """Returns ``text`` in at most ``width`` characters; a longer text gets .. in place of its middle."""
    if len(text) <= width:
        return text
    n = max(0, width - 2)
    return text[: n - n // 2] + ".."[: max(0, width)] + text[len(text) - n // 2 :]


def print_json(value: object) -> None:
    """Prints JSON to stdout."""
    json.dump(value, stdout.file, indent=2, default=_plain)
    stdout.file.write("\n")


def _plain(value: object) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
