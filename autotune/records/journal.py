"""Sweeps in a journal file of Optuna's, which optuna-dashboard shows while they run."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from ..core.errors import UsageError, told
from ..trial.row import Trial
from .record import SweepRecord
from .study import about, distributions_of, frozen, quiet


class Journal:
    """A file that has, for each sweep written to it, the study that ``autotune.study`` makes of its record.

    A trial is written when it has ended, in one piece: Optuna goes to the disk for each parameter and each attribute of
    a trial that runs, and a sweep that is killed would leave such trials behind.

    ``note``: is told when the file can no longer be written; the sweep goes on without it.

    Raises:
        UsageError: when the file is no such journal, is damaged or cannot be written.
    """

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._path, self._note = path, note
        self._study: optuna.Study | None = None
        self._distributions: Mapping[str, CategoricalDistribution] = {}
        self._started = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._storage = JournalStorage(JournalFileBackend(str(path)))
            _check_end(path)
        except Exception as error:  # whatever the storage makes of what is in the file
            raise UsageError(
                f"--dashboard {path}: it is no whole journal of Optuna's ({_why(error)}); name another file, or remove "
                "this one, since the record has all trials"
            ) from error

    def match(self, record: SweepRecord) -> None:
        """Make the study hold the trials of ``record``: what it lacks is added, or all is written anew if it differs.

        Raises:
            UsageError: when the file has a study of this title that is of another record.
        """
        self._started = record.about.started
        self._distributions = distributions_of(record.about.space, record.trials)
        wanted = [self._frozen(trial) for trial in record.trials]
        with self._writing():
            study = self._opened(record)
            found = study.get_trials(deepcopy=False)
            if any(not _is_same(*pair) for pair in zip(found, wanted, strict=False)) or len(found) > len(wanted):
                optuna.delete_study(study_name=study.study_name, storage=self._storage)
                study, found = self._opened(record), []
            for trial in wanted[len(found) :]:
                study.add_trial(trial)
            known = study.user_attrs
            for name, value in _about(record).items():
                if known.get(name) != value:
                    study.set_user_attr(name, value)
            self._study = study

    def add(self, trial: Trial) -> None:
        """Add a trial that the record has now."""
        if self._study is not None:
            with self._writing():
                self._study.add_trial(self._frozen(trial))

    def _frozen(self, trial: Trial) -> optuna.trial.FrozenTrial:
        return frozen(trial, self._distributions, None, self._started)

    def _opened(self, record: SweepRecord) -> optuna.Study:
        with quiet():
            study = optuna.create_study(study_name=record.title, storage=self._storage, load_if_exists=True)
        path, known = _about(record)["path"], study.user_attrs.get("path")
        if known is None and not study.get_trials(deepcopy=False):
            study.set_user_attr("path", path)
        elif known != path:
            raise UsageError(
                f"--dashboard {self._path}: its study {record.title!r} is of {known or 'something else'}, and this "
                f"sweep's record is {path}; name another file"
            )
        return study

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except UsageError:
            raise
        except Exception as error:  # a full disk, a file that another process has damaged
            self._study = None
            self._note(f"{self._path} is no longer written: {_why(error)}; the record goes on")


def _about(record: SweepRecord) -> dict[str, object]:
    return {**about(record), "path": str(record.path.resolve())}


def _is_same(one: optuna.trial.FrozenTrial, other: optuna.trial.FrozenTrial) -> bool:
    return (one.state, one.values, one.params) == (other.state, other.values, other.params)


def _check_end(path: Path) -> None:
    """Raises ValueError unless the last line is whole: Optuna passes over one that is not, and writes on behind it."""
    lines = path.read_bytes().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        raise ValueError("its last line is torn")
    for line in lines[-1:]:
        json.loads(line)


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else told(error).partition(" at ")[0]
