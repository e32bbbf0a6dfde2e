"""The record of a sweep: one folder, with one JSON line for each trial, on disk before the next trial begins.

results/<device>/<kernel>/<problem>/
    sweep.json     machine, versions, commit, settings; `stale`: numbers of the recorded trials that no longer held when
                   it last ran (other sources, another definition, compiler or protocol)
    trials.jsonl   one trial per line, winners and failures alike; a torn last line is ignored; a trial that turns out
                   wrong in the final round has a second line, which replaces the first
    digests.json   digests of the trials' machine code, which `autotune digest` stored, by compiler
    verdict.json   written when a sweep ends: winner, default, ties; `stamps`: those of the trials behind it

record_schema checks all content as it is read: a damaged line or file is ignored, with one warning on the logger
"autotune".
"""

import fcntl
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from ..core.errors import UsageError
from ..core.files import content_of, opened, write_whole
from ..core.parameter import Parameter
from ..core.schema import Check, Unsound, parse, seal
from ..core.space import Space
from . import record_schema
from .about import About
from .damage import Damaged, NewerFormat, cannot_write, tell
from .digests import Digests
from .outcome import VERDICT, Outcome
from .record_schema import FORMAT
from .trial import Trial
from .trial_log import TRIALS, mend_last_line, plain_number, read_trials

SWEEP, DIGESTS = "sweep.json", "digests.json"
NUMBERS = re.compile(r"\[\n[\d\s.,eE+-]+\]")  # a list of numbers in indented JSON


class SweepFolder:
    """The folder of one sweep, for writing and reading.

    Args:
        added: the parameters of today's space that older configs lack; configs get their values when they are read.

    Raises:
        UsageError: when it cannot be written; the recorded content stays as it is.
    """

    def __init__(self, path: Path, added: Sequence[Parameter] = ()) -> None:
        self.path, self._added = path, tuple(added)
        self._about: About | None = None

    @staticmethod
    def opened(path: Path, added: Sequence[Parameter] = ()) -> "SweepFolder":
        """Returns the folder at ``path``; creates it if it is missing.

        Raises:
            NewerFormat: when a later version wrote the record there.
        """
        folder = SweepFolder(path, added)
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder._check_format()
        except OSError as error:
            raise cannot_write(path, error) from error
        return folder

    def take_up(self, about: Mapping[str, object]) -> None:
        """Writes ``sweep.json``, and repairs the last line of the trials, so that the record can be continued."""
        try:
            mend_last_line(self.path)
            self._write_whole(SWEEP, {"format": FORMAT, **about})
            self._about = None
        except OSError as error:
            raise cannot_write(self.path, error) from error

    @contextmanager
    def locked(self, note: Callable[[str], None]) -> Iterator[None]:
        """Holds the lock of this folder, so that one process writes at a time; it is released when the process ends."""
        with self._lockable() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note(f"waiting: another process is at work in {self.path}")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def is_at_work(self) -> bool:
        """Returns whether a process holds the lock. A sweep that starts during this call may report that it waits."""
        with suppress(OSError), opened(self.path / TRIALS, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _lockable(self) -> IO[Any]:
        try:
            return opened(self.path / TRIALS, "ab")
        except OSError as error:
            raise cannot_write(self.path / TRIALS, error) from error

    def trials(self) -> list[Trial]:
        """Returns the trials ordered by number; the last line of each counts. Warns of damaged lines and skips them."""
        return read_trials(self.path, (self.path / VERDICT).exists(), self._all_added())

    def current(self, trials: Iterable[Trial] | None = None) -> list[Trial]:
        """Returns the trials that held when the sweep last ran, since their code and measurement had not changed.

        ``trials``: all trials, if they have been read already.
        """
        stale = set(self.about().stale)
        return [trial for trial in (self.trials() if trials is None else trials) if trial.number not in stale]

    def earlier(self) -> list[Trial]:
        """Returns the other trials: those from before the kernel or its measurement changed."""
        stale = set(self.about().stale)
        return [trial for trial in self.trials() if trial.number in stale]

    def about(self) -> About:
        """Returns the content of sweep.json, which is read once.

        Raises:
            Damaged: when it cannot be read, or a later version wrote it.
        """
        if self._about is None:
            self._about = self._read_about()
        return self._about

    def _read_about(self) -> About:
        return About.read(_content(self.path / SWEEP, record_schema.as_sweep)).completed(self._added)

    def of_space(self, space: Space) -> "SweepFolder":
        """Returns the folder with configs that include the parameters added to ``space`` later."""
        return SweepFolder(self.path, space.added) if space.added else self

    def _all_added(self) -> tuple[Parameter, ...]:
        """Returns the parameters that older configs lack, including those of sweep.json if that is not damaged."""
        with suppress(Damaged):
            return self._read_about().added
        return self._added

    def compiler(self) -> str:
        """Returns the compiler of trials that do not name one themselves; "" if sweep.json names none."""
        with suppress(Damaged):
            return self.about().compiler
        return ""

    def digests(self) -> Digests:
        """Returns the content of digests.json; empty if the file is missing or, with a warning, damaged."""
        path = self.path / DIGESTS
        if not path.exists():
            return Digests()
        try:
            return Digests(**_content(path, record_schema.as_digests))
        except Damaged as error:
            tell(f"{error}. It is ignored; `autotune digest` writes a new one")
            return Digests()

    def write_digests(self, digests: Digests) -> None:
        try:
            self._write_whole(DIGESTS, asdict(digests))
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def write_outcome(self, outcome: Outcome) -> None:
        try:
            self._write_whole(VERDICT, outcome.as_json())
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def outcome(self) -> Outcome | None:
        """Returns the content of verdict.json; None if the file is missing or, with a warning, damaged."""
        path = self.path / VERDICT
        if not path.exists():
            return None
        try:
            return Outcome.read(_content(path, record_schema.as_verdict), self._all_added())
        except Damaged as error:
            tell(f"{error}. It is ignored; start the sweep again to write a new one")
            return None

    def current_outcome(self) -> Outcome | None:
        """Returns ``outcome``, or None if one of its finalists no longer holds."""
        outcome, stale = self.outcome(), set(self.about().stale)
        if outcome is None or any(finalist.number in stale for finalist in outcome.finalists):
            return None
        return outcome

    def drop_outcome(self) -> None:
        """Deletes the outcome, since a sweep that continues has none."""
        (self.path / VERDICT).unlink(missing_ok=True)

    def _check_format(self) -> None:
        """Raises NewerFormat for a record of a later version; a damaged sweep.json may be overwritten."""
        if not (self.path / SWEEP).exists():
            return
        try:
            self.about()
        except NewerFormat:
            raise
        except Damaged as error:
            tell(f"{error}. It is replaced")
        self._about = None

    def _write_whole(self, name: str, content: Mapping[str, object]) -> None:
        as_read = json.loads(json.dumps(content, default=plain_number, allow_nan=False))
        text = json.dumps(seal(as_read), indent=2)
        write_whole(self.path / name, (NUMBERS.sub(_on_one_line, text) + "\n").encode())


def _on_one_line(numbers: re.Match[str]) -> str:
    return " ".join(numbers[0].split())


def find_sweeps(path: Path) -> list[SweepFolder]:
    """Returns the readable recorded sweeps at or under ``path``, and warns about the others.

    Raises:
        UsageError: when there is no readable sweep.
    """
    folders = sorted(p.parent for p in path.rglob(SWEEP)) if path.is_dir() else []
    if not folders:
        raise UsageError(f"{path} holds no recorded sweep (no {SWEEP} at or under it); `autotune sweep` records one")
    sweeps, damaged = [], []
    for folder in map(SweepFolder, folders):
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


def all_sweeps(paths: Iterable[Path]) -> list[SweepFolder]:
    """Returns the readable recorded sweeps at or under ``paths``, each once.

    Raises:
        UsageError: when one of the paths contains no readable sweep.
    """
    return list({folder.path.resolve(): folder for path in paths for folder in find_sweeps(path)}.values())


def _content(path: Path, check: Check) -> dict[str, Any]:
    """Returns the checked JSON at ``path``. Raises Damaged."""
    try:
        content: dict[str, object] = check(parse(content_of(path)))
    except OSError as error:
        raise Damaged(f"{path} cannot be read: {error.strerror or error}") from error
    except record_schema.Newer as error:
        raise NewerFormat(f"{path} {error}") from error
    except Unsound as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    return content
