"""The record of a sweep: one folder, one owner of truth, one JSON line a trial, on disk before the next trial begins.

results/<device>/<kernel>/<problem>/
    sweep.json     what ran where: machine, versions, commit, settings; `stale`: numbers of the recorded trials that no
                   longer held when it was last run (other sources, another definition, compiler or protocol)
    trials.jsonl   one trial a line, winners and failures alike; a torn last line is ignored, and a trial that turns out
                   wrong in the final round has a second line, which counts
    digests.json   what `autotune digest` found of trials: digests of their machine code by the compilers that it had
    verdict.json   written when a sweep ends: winner, default, ties; `stamps`: of the trials that it was made from

What is read has been checked by record_schema: a damaged line or file is left out, and said so once on the logger
"autotune".
"""

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.errors import UsageError
from ..core.files import write_whole
from ..core.schema import Check, Unsound, parse, plain, seal
from ..trial.row import Trial
from . import record_schema
from .about import About
from .outcome import Outcome
from .record_schema import FORMAT

TRIALS, SWEEP, VERDICT, DIGESTS = "trials.jsonl", "sweep.json", "verdict.json", "digests.json"
SUM = "sum"  # the member of a line that holds its checksum
log = logging.getLogger("autotune")


class Damaged(UsageError):
    """A file of a record that cannot be used: the message names it and says why."""


class NewerFormat(Damaged):
    """A file of a record that a later version wrote."""


@dataclass(frozen=True)
class Digests:
    """Digests by trial number, for recorded trials whose own lines lack them."""

    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by compiler, then by number
    conditions: Mapping[str, str] = field(default_factory=dict)

    def code(self, trial: Trial, compiler: str) -> str:
        """Returns the digest of the machine code that ``compiler`` made of a trial's source; "" if unknown."""
        if trial.code and trial.compiler == compiler:
            return trial.code
        return self.codes.get(compiler, {}).get(str(trial.number), "")

    def condition(self, trial: Trial) -> str:
        """Returns the digest of the trial's other conditions; "" if unknown."""
        return trial.conditions or self.conditions.get(str(trial.number), "")


class SweepFolder:
    """The folder of one sweep, to write and to read.

    Raises:
        UsageError: when it cannot be written; nothing that was recorded is touched.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._about: About | None = None

    @staticmethod
    def opened(path: Path) -> "SweepFolder":
        """Make the folder, if it is not there.

        Raises:
            NewerFormat: when a later version has recorded there.
        """
        folder = SweepFolder(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder._check_format()
        except OSError as error:
            raise _cannot_write(path, error) from error
        return folder

    def take_up(self, about: dict[str, Any]) -> None:
        """Write ``sweep.json``, and make the record fit to be continued."""
        try:
            self._mend_last_line()
            self._write_whole(SWEEP, {"format": FORMAT, **about})
            self._about = None
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def append(self, trial: Trial) -> None:
        """Append one line and flush it to the disk.

        Raises:
            UsageError: when the disk is full or not writable; earlier trials stay.
        """
        line = _line(trial)
        path = self.path / TRIALS
        size = path.stat().st_size if path.exists() else 0
        try:
            with open(path, "ab", buffering=0) as file:
                if file.write(line) != len(line):
                    raise OSError(28, "No space left on device")
                os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):  # half a line would be ignored; taking it back keeps the file tidy
                os.truncate(path, size)
            raise _cannot_write(path, error) from error

    @contextmanager
    def locked(self, note: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock of this folder: one process writes at a time, and the lock is released when it ends."""
        with open(self.path / TRIALS, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note(f"waiting: another process is at work in {self.path}")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def trials(self) -> list[Trial]:
        """Returns trials ordered by number, from the last line of each. Damaged lines are skipped with a warning."""
        trials = {(trial.number, trial.config): trial for trial in self._rows()}
        return sorted(trials.values(), key=lambda trial: trial.number)

    def current(self, trials: Iterable[Trial] | None = None) -> list[Trial]:
        """Returns the trials that were valid when the sweep last ran: their code and measurement had not changed.

        ``trials``: all of them, where they have been read.
        """
        stale = set(self.about().stale)
        return [trial for trial in (self.trials() if trials is None else trials) if trial.number not in stale]

    def about(self) -> About:
        """Returns what sweep.json says, as it was when first asked for.

        Raises:
            Damaged: when it cannot be read, or a later version wrote it.
        """
        if self._about is None:
            self._about = About.read(_content(self.path / SWEEP, record_schema.sweep))
        return self._about

    def compiler(self) -> str:
        """Returns the compiler of trials that do not name one themselves; "" if sweep.json does not name it."""
        with suppress(Damaged):
            return self.about().compiler
        return ""

    def digests(self) -> Digests:
        """Returns the content of digests.json; nothing where there is none, or a damaged one, which is told."""
        path = self.path / DIGESTS
        if not path.exists():
            return Digests()
        try:
            return Digests(**_content(path, record_schema.digests))
        except Damaged as error:
            tell(f"{error}. It is taken as absent; `autotune digest` makes it anew")
            return Digests()

    def write_digests(self, found: Digests) -> None:
        try:
            self._write_whole(DIGESTS, asdict(found))
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def write_outcome(self, outcome: Outcome) -> None:
        try:
            self._write_whole(VERDICT, outcome.as_json())
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def outcome(self) -> Outcome | None:
        """Returns what verdict.json holds; None where there is none, or a damaged one, which is told."""
        path = self.path / VERDICT
        if not path.exists():
            return None
        try:
            return Outcome.read(_content(path, record_schema.verdict))
        except Damaged as error:
            tell(f"{error}. It is taken as absent; start the sweep again to make it anew")
            return None

    def current_outcome(self) -> Outcome | None:
        """Returns ``outcome``, or None if trials that it was made from no longer hold."""
        outcome, stale = self.outcome(), set(self.about().stale)
        if outcome is None or any(finalist.number in stale for finalist in outcome.finalists):
            return None
        return outcome

    def drop_outcome(self) -> None:
        """Delete the outcome, since a sweep that continues has none."""
        (self.path / VERDICT).unlink(missing_ok=True)

    def _rows(self) -> Iterator[Trial]:
        path = self.path / TRIALS
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            tell(f"{path} cannot be read: {error.strerror or error}. Its trials are left out")
            return
        damaged: dict[int, Unsound] = {}
        numbers: set[int] = set()
        for number, line in enumerate(data.split(b"\n")[:-1], 1):  # the rest is empty or torn
            try:
                trial = _trial(line)
                numbers.add(trial.number)
                yield trial
            except Unsound as error:
                damaged[number] = error
        if not damaged and not (self.path / VERDICT).exists():  # a verdict knows its trials
            self._tell_gaps(numbers)
        if damaged:
            (first, why), *more = damaged.items()
            also = f" and {len(more)} more, such as line {more[0][0]}" if more else ""
            tell(f"{path}:{first}: left out this line{also}, which is damaged: {why}")

    def _tell_gaps(self, numbers: set[int]) -> None:
        n_gone = max(numbers, default=-1) + 1 - len(numbers)
        if n_gone:
            first = next(number for number in range(len(numbers) + 1) if number not in numbers)
            tell(f"{self.path / TRIALS} lacks {n_gone} trials, such as number {first}: what it says is of what is left")

    def _check_format(self) -> None:
        """Raises NewerFormat for a record of a newer version; a damaged sweep.json may be overwritten."""
        if not (self.path / SWEEP).exists():
            return
        try:
            self.about()
        except NewerFormat:
            raise
        except Damaged as error:
            tell(f"{error}. It is written anew")
        self._about = None

    def _write_whole(self, name: str, content: dict[str, Any]) -> None:
        as_read = json.loads(json.dumps(content, default=_plain, allow_nan=False))
        write_whole(self.path / name, (json.dumps(seal(as_read), indent=2) + "\n").encode())

    def _mend_last_line(self) -> None:
        """Cut a last line that a kill or a full disk has torn, so that the next one starts on its own."""
        path = self.path / TRIALS
        if not path.exists():
            return
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            os.truncate(path, len(whole))


def find_sweeps(path: Path) -> list[SweepFolder]:
    """Returns the readable recorded sweeps at or under ``path`` and warns about others.

    Raises:
        UsageError: when there is none.
    """
    found = sorted(p.parent for p in path.rglob(SWEEP)) if path.is_dir() else []
    if not found:
        raise UsageError(f"{path} holds no recorded sweep (no {SWEEP} in it or under it); `autotune sweep` makes one")
    sweeps, damaged = [], []
    for folder in map(SweepFolder, found):
        try:
            folder.about()
            sweeps.append(folder)
        except Damaged as error:
            damaged.append(error)
    if not sweeps:
        raise (
            damaged[0] if len(damaged) == 1 else Damaged(f"{damaged[0]}. None of the {len(damaged)} there can be read")
        )
    for one in damaged:
        tell(f"{one}. This sweep is left out")
    return sweeps


def tell(what: str) -> None:
    """Warn once, in one line, that a part of a record is left out."""
    if what not in _told:
        _told.add(what)
        log.warning("%s", " ".join(plain(what).split()))


_told: set[str] = set()


@dataclass(frozen=True)
class Missing:
    """Trials that a verdict was made from and that are not recorded any more, or not as they were.

    ``numbers``: of those that are known by their numbers, which of an older verdict are the finalists only.
    """

    n: int
    numbers: tuple[int, ...]


def missing(outcome: Outcome, trials: Iterable[Trial]) -> Missing:
    """Returns the trials of ``outcome`` that are not among ``trials``, by ``stamps`` or the sum of ``counts``."""
    there = {trial.number: trial.stamp for trial in trials}
    if outcome.stamps is not None:
        gone = sorted(int(number) for number, stamp in outcome.stamps.items() if there.get(int(number)) != stamp)
        return Missing(len(gone), tuple(gone))
    named = {f.number for f in outcome.finalists if f.number is not None}
    gone = sorted(named - there.keys())
    return Missing(max(len(gone), sum((outcome.counts or {}).values()) - len(there)), tuple(gone))


def tell_missing(path: Path, outcome: Outcome, trials: Iterable[Trial]) -> None:
    """Warn if trials behind the outcome of the sweep at ``path`` are missing."""
    gone = missing(outcome, trials)
    if gone.n:
        numbers = f" (numbers {', '.join(map(str, gone.numbers[:5]))}{', ...' * (gone.n > 5)})" if gone.numbers else ""
        tell(
            f"{path / TRIALS} lacks {gone.n} trials{numbers} that its {VERDICT} was made from: the outcome stands, the "
            "search's figures are of what is left; start the sweep again to replace them"
        )


def _line(trial: Trial) -> bytes:
    """Returns a trial's JSON, whose last member is a checksum of the bytes before it."""
    body = json.dumps(trial.as_json(), separators=(",", ":"), allow_nan=False, default=_plain)[:-1].encode()
    return body + _sum(body) + b"\n"


def _sum(body: bytes) -> bytes:
    return b',"%s":"%s"}' % (SUM.encode(), hashlib.sha256(body).hexdigest()[:16].encode())


N_SUM = len(_sum(b""))


def _trial(line: bytes) -> Trial:
    """Returns the trial of a line; one of an older version has no checksum.

    Raises:
        Unsound: when that is no trial, or not as it was written.
    """
    row = parse(line)
    if isinstance(row, dict) and SUM in row and line[-N_SUM:] != _sum(line[:-N_SUM]):
        raise Unsound("it does not have the checksum that it states")
    values = record_schema.trial(row)
    return Trial(**{**values, "config": Config(values["config"])})


def _content(path: Path, check: Check) -> dict[str, Any]:
    """Returns the JSON at ``path``, checked. Raises Damaged."""
    try:
        content: dict[str, Any] = check(parse(path.read_bytes()))
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror or error}") from error
    except record_schema.Newer as error:
        raise NewerFormat(f"{path} {error}") from error
    except Unsound as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    return content


def _plain(value: Any) -> Any:
    """Converts NumPy's numbers to JSON's."""
    return value.item() if hasattr(value, "item") else str(value)


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write {path}: {error.strerror or error}. What was recorded before is safe; "
        "make room or choose another place with --results, and start again to continue"
    )
