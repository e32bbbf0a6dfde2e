"""The trials of a running sweep: one JSON line each, with a checksum, on disk before the next trial begins.

A line states what differs from a field's default. A torn last line is ignored. A trial that turns out wrong in the
final round has a second line, which replaces the first. The trials of a finished sweep are in its packed table; lines
beside it are newer.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.errors import Status
from ..core.files import opened
from ..core.schema import Unsound, parse, plain
from .damage import cannot_write, tell
from .figure import as_members, stated
from .trial import Trial, as_recorded_trial

TRIALS, SUM = "trials.jsonl", "sum"  # the file; the member of a line that contains its checksum
MOST_LINE, PIECE = 1 << 26, 1 << 20  # limit of a line, in bytes; bytes that are read at a time


@dataclass
class TrialLog:
    """The valid trials of a running sweep, recorded in ``folder``; only the sweep's thread adds trials."""

    folder: Path
    trials: list[Trial]
    next_number: int

    def add(self, trial: Trial) -> Trial:
        """Records one more trial; returns it as the record gives it back, which is a failed one if a figure is unsound.

        Raises:
            UsageError: when it cannot be written.
        """
        trial = recordable(trial)
        append(self.folder, trial)
        self.trials.append(trial)
        self.next_number = trial.number + 1
        return trial

    def amend(self, trial: Trial, amended: Trial) -> None:
        """Records ``amended`` in place of ``trial``, which must be in ``trials``."""
        append(self.folder, amended)
        self.trials[self.trials.index(trial)] = amended

    @property
    def fastest(self) -> Trial | None:
        measured = [t for t in self.trials if t.median_s]
        return min(measured, key=lambda t: t.median_s or 0.0) if measured else None

    def counts(self) -> dict[str, int]:
        """Returns the number of trials by status."""
        return dict(Counter(t.status for t in self.trials))


def recordable(trial: Trial) -> Trial:
    """Returns the trial as its record gives it back, without samples, which only finalists keep.

    A trial with an unsound figure costs itself, and never the record: it becomes a failed one that says what was wrong.
    """
    try:
        return replace(as_recorded_trial(trial), samples_s=())
    except Unsound as error:
        why = f"the device or the definition returned what cannot be recorded: {error}"
        return Trial(
            number=trial.number,
            status=Status.DEFINITION_FAILED,
            config=Config(trial.config),
            key=trial.key if isinstance(trial.key, str) else None,
            stamp=trial.stamp,
            message=plain(why),
            at=trial.at,
        )


def as_row(trial: Trial) -> dict[str, object]:
    """Returns all members of a trial as JSON."""
    return as_members(trial) | {"samples_s": list(trial.samples_s)}


def append(folder: Path, trial: Trial) -> None:
    """Appends one line and flushes it to the disk.

    Raises:
        UsageError: when the disk is full or not writable; earlier trials are safe.
    """
    line = line_of(trial)
    path = folder / TRIALS
    size = path.stat().st_size if path.exists() else 0
    try:
        with open(path, "ab", buffering=0) as file:
            if file.write(line) != len(line):
                raise OSError(28, "No space left on device")
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):  # a torn line would be ignored, but the file is tidier without it
            os.truncate(path, size)
        raise cannot_write(path, error) from error


def mend_last_line(folder: Path) -> None:
    """Removes a torn last line, which a kill or a full disk has left, so that the next one starts on its own line."""
    path = folder / TRIALS
    if not path.exists():
        return
    with opened(path, "rb") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:  # read backwards, since a record may be larger than the memory
            begin = max(0, end - PIECE)
            file.seek(begin)
            if (newline := file.read(end - begin).rfind(b"\n")) >= 0:
                end = begin + newline + 1
                break
            end = begin
    if end != size:
        os.truncate(path, end)


def read_log(folder: Path, damaged: dict[int, str]) -> Iterator[Trial]:
    """Yields the trials of a sweep's lines in their order, and adds to ``damaged`` why others are left out."""
    path = folder / TRIALS
    shared: dict[Any, Any] = {}
    try:
        with opened(path, "rb") as file:
            for number, line in enumerate(iter(partial(file.readline, MOST_LINE), b""), 1):
                if len(line) == MOST_LINE and not line.endswith(b"\n"):
                    damaged[number] = f"it is longer than {MOST_LINE} bytes; the rest of the file is ignored"
                    break
                if not line.endswith(b"\n"):  # torn
                    break
                try:
                    trial = _trial(line[:-1], shared)
                except Unsound as error:
                    damaged[number] = str(error)
                else:
                    yield trial
    except FileNotFoundError:
        return
    except OSError as error:
        damaged[0] = f"the file cannot be read: {error.strerror or error}"


def tell_damaged(path: Path, damaged: Mapping[int, str]) -> None:
    """Warns of damaged lines by number; 0 is the file as a whole."""
    if damaged:
        (first, why), *more = sorted(damaged.items())
        also = f" (and {len(more)} more, such as line {more[0][0]})" if more else ""
        if first:
            tell(f"{path}:{first}: this line is damaged and ignored{also}: {why}")
        else:
            tell(f"{path} is damaged: {why}. Its trials are left out")


def line_of(trial: Trial) -> bytes:
    """Returns a trial's JSON; its last member is a checksum of the bytes before it."""
    body = json.dumps(stated(trial), separators=(",", ":"), allow_nan=False, default=plain_number)[:-1].encode()
    return body + _sum(body) + b"\n"


def _sum(body: bytes) -> bytes:
    return b',"%s":"%s"}' % (SUM.encode(), hashlib.sha256(body).hexdigest()[:16].encode())


N_SUM = len(_sum(b""))


def _trial(line: bytes, shared: dict[Any, Any]) -> Trial:
    """Returns the trial in a line; a line of an older version has no checksum.

    ``shared``: texts and tuples of earlier lines, which this trial reuses, since most of a record repeats.

    Raises:
        Unsound: when the line is not a trial, or does not match its checksum.
    """
    row = parse(line)
    if isinstance(row, dict) and SUM in row and line[-N_SUM:] != _sum(line[:-N_SUM]):
        raise Unsound("it does not have the checksum that it states")
    trial = Trial.read(row)
    for name in REPEATED:
        if value := getattr(trial, name):
            vars(trial)[name] = shared.setdefault(value, value)
    return trial


REPEATED = ("compiler", "conditions", "message", "at", "grid", "block", "verified_on")


def plain_number(value: object) -> Any:
    """Converts NumPy numbers to JSON numbers, and other objects to text."""
    return value.item() if hasattr(value, "item") else str(value)
