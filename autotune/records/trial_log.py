"""The trials of a record: one JSON line each, with a checksum, on disk before the next trial begins.

A torn last line is ignored. A trial that turns out wrong in the final round has a second line, which replaces the
first.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.errors import TrialFailure
from ..core.files import opened
from ..core.parameter import Parameter, completed_config
from ..core.schema import Unsound, parse
from . import record_schema
from .damage import cannot_write, tell
from .record_schema import SUM
from .trial import Trial

TRIALS = "trials.jsonl"
MOST_LINE, PIECE = 1 << 26, 1 << 20  # limit of a line, in bytes; bytes that are read at a time


@dataclass
class TrialLog:
    """The valid trials of a running sweep, recorded in ``folder``; only the sweep's thread adds trials."""

    folder: Path
    trials: list[Trial]
    next_number: int

    def add(self, trial: Trial) -> None:
        """Records one more trial.

        Raises:
            UsageError: when it cannot be written.
        """
        append(self.folder, trial)
        self.trials.append(trial)
        self.next_number = trial.number + 1

    def refute(self, trial: Trial, failure: TrialFailure) -> None:
        """Records that ``trial``, which must be in ``trials``, failed in a later check."""
        self.amend(trial, trial.refuted(failure))

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


def as_row(trial: Trial) -> dict[str, object]:
    """Returns the members of a trial's line."""
    row = {name: getattr(trial, name) for name in record_schema.TRIAL}
    return row | {"status": str(trial.status), "config": dict(trial.config), **trial.others}


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


def read_trials(folder: Path, with_outcome: bool, added: Sequence[Parameter] = ()) -> list[Trial]:
    """Returns the trials ordered by number; the last line of each counts. Warns of damaged lines and skips them.

    ``with_outcome``: the record has an outcome, by which missing trials are reported.
    ``added``: parameters that older configs lack; the returned trials have them.
    """
    rows: Iterable[Trial] = _rows(folder, with_outcome)
    if added:
        rows = (replace(trial, config=completed_config(trial.config, added)) for trial in rows)
    trials = {(trial.number, trial.config): trial for trial in rows}
    return sorted(trials.values(), key=lambda trial: trial.number)


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


def _rows(folder: Path, with_outcome: bool) -> Iterator[Trial]:
    path = folder / TRIALS
    damaged: dict[int, Unsound] = {}
    numbers: set[int] = set()
    later: dict[str, None] = {}  # names of a later version's fields
    shared: dict[Any, Any] = {}
    try:
        with opened(path, "rb") as file:
            for number, line in enumerate(iter(partial(file.readline, MOST_LINE), b""), 1):
                if len(line) == MOST_LINE and not line.endswith(b"\n"):
                    damaged[number] = Unsound(f"it is longer than {MOST_LINE} bytes; the rest of the file is ignored")
                    break
                if not line.endswith(b"\n"):  # torn
                    break
                try:
                    trial = _trial(line[:-1], shared)
                except Unsound as error:
                    damaged[number] = error
                else:
                    numbers.add(trial.number)
                    later.update(dict.fromkeys(trial.others))
                    yield trial
    except FileNotFoundError:
        return
    except OSError as error:
        tell(f"{path} cannot be read: {error.strerror or error}. Its trials are left out")
        return
    if later:
        tell(f"{path} has fields that only a later autotune knows ({', '.join(later)}): they are kept unchanged")
    if not damaged and not with_outcome:  # an outcome reports missing trials itself
        _tell_gaps(path, numbers)
    if damaged:
        (first, why), *more = damaged.items()
        also = f" (and {len(more)} more, such as line {more[0][0]})" if more else ""
        tell(f"{path}:{first}: this line is damaged and ignored{also}: {why}")


def _tell_gaps(path: Path, numbers: set[int]) -> None:
    n_gone = max(numbers, default=-1) + 1 - len(numbers)
    if n_gone:
        first = next(number for number in range(len(numbers) + 1) if number not in numbers)
        tell(f"{path} lacks {n_gone} trials, such as number {first}: its figures cover only the other trials")


def line_of(trial: Trial) -> bytes:
    """Returns a trial's JSON; its last member is a checksum of the bytes before it."""
    body = json.dumps(as_row(trial), separators=(",", ":"), allow_nan=False, default=plain_number)[:-1].encode()
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
    values = record_schema.as_trial(row)
    for name in REPEATED:
        if (value := values.get(name)) is not None:
            values[name] = shared.setdefault(value, value)
    config = {shared.setdefault(name, name): value for name, value in values["config"].items()}
    return Trial(**{**values, "config": Config(config)})


REPEATED = ("compiler", "conditions", "message", "at", "grid", "block", "verified_on")


def plain_number(value: object) -> Any:
    """Converts NumPy numbers to JSON numbers, and other objects to text."""
    return value.item() if hasattr(value, "item") else str(value)
