"""Writes sweeps to an Optuna journal file, which optuna-dashboard shows while they run."""

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from ..core.errors import UsageError, error_text
from ..core.files import content_of
from .record import SweepRecord
from .study import about, directions_of, distributions_of, frozen, name_objectives, quiet
from .trial import Trial

LEFT_S, PAUSE_S = 5.0, 0.005  # time until an unchanged lock counts as abandoned; time between two checks


class Journal:
    """A journal file; for each sweep it contains the study that ``autotune.study`` makes of its record.

    A trial is written as a whole when it has ended: Optuna writes each parameter and each attribute of a running trial
    separately, and a killed sweep would leave incomplete trials behind.

    ``note``: is called with a message when the file can no longer be written; the sweep continues without it.

    Raises:
        UsageError: when the file is not an Optuna journal, is damaged, or cannot be written.
    """

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._path, self._note = path, note
        self._study: optuna.Study | None = None
        self._record: SweepRecord | None = None
        self._distributions: Mapping[str, CategoricalDistribution] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                _check_end(path)
            whole = str(path.absolute())  # the lock is a link to this path
            self._storage = JournalStorage(JournalFileBackend(whole, _Lock(whole)))
        except Exception as error:  # the storage may raise anything for a wrong file
            raise UsageError(
                f"dashboard {path}: it is not a complete Optuna journal ({_why(error)}); name another file or remove "
                "this one, since the record has all trials"
            ) from error

    def match(self, record: SweepRecord) -> None:
        """Makes the study equal to ``record``: adds missing trials, or writes all of them again if others differ.

        Raises:
            UsageError: when the file contains a study with this title from another record.
        """
        self._record = record
        self._distributions = distributions_of(record.about.space, record.trials)
        wanted = [frozen(record, trial, self._distributions) for trial in record.trials]
        with self._writing():
            study = self._opened(record)
            present = study.get_trials(deepcopy=False)
            begun = [_outcome(trial) for trial in wanted[: len(present)]]
            directions = [direction.name.lower() for direction in study.directions]
            if [_outcome(trial) for trial in present] != begun or directions != directions_of(record):
                optuna.delete_study(study_name=study.study_name, storage=self._storage)
                study, present = self._opened(record), []
            for trial in wanted[len(present) :]:
                study.add_trial(trial)
            if study.metric_names is None:
                name_objectives(study, record)
            known = study.user_attrs
            for name, value in _about(record).items():
                if known.get(name) != value:
                    study.set_user_attr(name, value)
            self._study = study

    def add(self, trial: Trial) -> None:
        """Adds a new trial of the record."""
        if self._study is not None and self._record is not None:
            with self._writing():
                self._study.add_trial(frozen(self._record, trial, self._distributions))

    def _opened(self, record: SweepRecord) -> optuna.Study:
        with quiet():
            study = optuna.create_study(
                study_name=record.title,
                storage=self._storage,
                directions=directions_of(record),
                load_if_exists=True,
            )
        path, stored = _about(record)["path"], study.user_attrs.get("path")
        if stored is None and not study.get_trials(deepcopy=False):
            study.set_user_attr("path", path)
        elif stored != path:
            raise UsageError(
                f"dashboard {self._path}: its study {record.title!r} is of {stored or 'something else'}, but this "
                f"sweep's record is {path}; name another file"
            )
        return study

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except UsageError:
            raise
        except Exception as error:  # the disk is full, or another process has damaged the file
            self._study = None
            self._note(f"{self._path} is no longer written: {_why(error)}; the record goes on")


class _Lock(JournalFileSymlinkLock):
    """Optuna's lock of a journal, which is a link beside it. An abandoned lock is taken over.

    A write takes milliseconds, so a link to this journal that stays unchanged for LEFT_S belongs to a killed process. A
    link to something else is not a lock.
    """

    def acquire(self) -> bool:
        """Takes the lock. Raises OSError if its path is permanently occupied by something that is not a lock."""
        held, since = None, time.monotonic()
        while True:
            try:
                os.symlink(self._lock_target_file, self._lock_file)
                return True
            except FileExistsError:
                pass
            try:
                status = os.lstat(self._lock_file)
                target = os.readlink(self._lock_file) if stat.S_ISLNK(status.st_mode) else None
            except FileNotFoundError:
                continue
            if held != (status.st_ino, status.st_mtime_ns):
                held, since = (status.st_ino, status.st_mtime_ns), time.monotonic()
            elif time.monotonic() - since > LEFT_S:
                if target is None or Path(target).name != Path(self._lock_target_file).name:
                    what = "a link to something else" if target is not None else "not a link"
                    raise OSError(errno.EEXIST, f"its lock, {self._lock_file}, is {what}; remove it")
                with suppress(RuntimeError):  # another process was first
                    self.release()
            time.sleep(PAUSE_S)


def _about(record: SweepRecord) -> dict[str, object]:
    return {**about(record), "path": str(record.path.resolve())}


def _outcome(trial: optuna.trial.FrozenTrial) -> tuple[object, ...]:
    return trial.params, trial.state, trial.values


def _check_end(path: Path) -> None:
    """Raises ValueError unless the last line is complete: Optuna would ignore a torn one, and continue behind it."""
    lines = content_of(path).splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        raise ValueError("its last line is torn")
    for line in lines[-1:]:
        json.loads(line)


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else error_text(error).partition(" at ")[0]
