"""The record of a sweep: one folder. Each trial is on disk before the next one begins; a finished sweep is packed.

results/<device>/<kernel>/
    setup-<digest>.json   what sweeps have in common: device, settings, machine, versions, commit
    space-<digest>.json   the same: parameters, constraints, fields of the problem
    <problem>/            one sweep
        sweep.json        problem, default and setup; `stale`: numbers of the recorded trials that no longer held when
                          it last ran (other sources, another definition, compiler or protocol)
        trials.jsonl      while it runs: one trial per line, winners and failures alike; a torn last line is ignored
        trials.csv        once it has ended: its trials as a table. Lines of trials.jsonl beside it are newer
        verdict.json      written when a sweep ends: winner, default, ties, and the samples of its final round
        digests.json      digests of the trials' machine code by other compilers, which `autotune digest` stored

Records of older versions are read as well; ``pack`` turns them over. All content is checked as it is read: a damaged
line or file is ignored, with one warning on the logger "autotune".
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ..core.config import Config
from ..core.device import Ceilings
from ..core.digest import digest
from ..core.errors import UsageError
from ..core.files import content_of, write_whole
from ..core.parameter import Parameter, completed_config
from ..core.schema import Unsound, as_count, parse, sealed
from ..core.space import Space
from ..core.work import Work, rates_of
from .about import SHARED, About
from .as_recorded import protocol_of
from .checks_made import USUAL
from .damage import Damaged, NewerFormat, cannot_write, tell
from .digests import Digests
from .json_files import Newer, read_json, write_json
from .outcome import VERDICT, Outcome, stated_ceilings, tell_missing
from .packed import TABLE, Known, TrialTable, read_table, table_text
from .trial import Trial
from .trial_log import TRIALS, mend_last_line, plain_number, read_log, tell_damaged

FORMAT = 2
SWEEP, DIGESTS = "sweep.json", "digests.json"
FILES = (SWEEP, TRIALS, TABLE, VERDICT)  # those on which an answer about a sweep depends
SHARED_NAME = re.compile(rf"({'|'.join(SHARED)})-[0-9a-f]{{16}}\.json")
T = TypeVar("T")


class SweepFolder:
    """The folder of one sweep, for writing and reading.

    Args:
        added: the parameters of today's space that older configs lack; configs get their values when they are read.

    Raises:
        UsageError: when it cannot be written; the recorded content stays as it is.
    """

    def __init__(self, path: Path, added: Sequence[Parameter] = ()) -> None:
        self.path, self._added = path, tuple(added)
        self._about: tuple[object, About] | None = None
        self._read_trials: tuple[object, list[Trial]] | None = None
        self._is_damaged = False

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

    def take_up(self, about: About) -> None:
        """Writes ``sweep.json``, and repairs the last line of the trials, so that the record can be continued."""
        try:
            mend_last_line(self.path)
            content, *shared = about.as_files().items()
            names = {kind: self._write_shared(kind, members) for kind, members in shared if members}
            write_json(self.path / SWEEP, {"format": FORMAT, **names, **content[1]})
            self._about = None
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _write_shared(self, kind: str, members: Mapping[str, object]) -> str:
        """Writes members that other sweeps may share beside their folders, and returns the name of the file."""
        name = f"{kind}-{digest(json.dumps(members, sort_keys=True, default=plain_number))}.json"
        try:
            self._shared(kind, name)
        except (Damaged, Unsound):  # missing, or damaged
            write_json(self.path.absolute().parent / name, members)
        return name

    def whole(self) -> tuple[About, list[Trial], Outcome | None]:
        """Returns the whole record as it is written, to be packed.

        Raises:
            Damaged: when a line or a file of it is damaged: what cannot be read must stay as it is.
        """
        trials, damaged = self._read_recorded()
        for name, lines in damaged.items():
            if lines:
                line, why = min(lines.items())
                raise Damaged(f"{self.path / name}:{line} is damaged: {why}. The record stays as it is, unpacked")
        path = self.path / VERDICT
        outcome = read_json(path, lambda content: self._outcome_of(content, trials)) if path.exists() else None
        return self.about(), trials, outcome

    def write_packed(self, about: About, trials: Sequence[Trial], outcome: Outcome | None) -> None:
        """Writes the trials as a table, then the rest without what the table says, and removes the lines.

        It may be killed at any time and called again. The caller holds the lock.

        Raises:
            UsageError: when it cannot be written; the lines stay as they are.
        """
        own = {trial.number: trial for trial in trials}
        rest = self.digests().of_numbers(own, about.compiler)
        try:
            table = table_text(trials, _known_of(about, outcome.ceilings if outcome else None))
            write_whole(self.path / TABLE, table.encode(errors="surrogateescape"), is_durable=True)
            self.take_up(about)
            if rest == Digests():
                (self.path / DIGESTS).unlink(missing_ok=True)
            else:
                write_json(self.path / DIGESTS, rest.as_json())
            if outcome is not None:
                write_json(self.path / VERDICT, outcome.as_json(trials, _known_of_outcome(about)))
            (self.path / TRIALS).unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def trials(self) -> list[Trial]:
        """Returns the trials ordered by number; the last line of each counts. Warns of damaged lines and skips them."""
        trials = self._recorded()
        later = dict.fromkeys(name for trial in trials for name in trial.others)
        self._tell([trial.number for trial in trials], later, self._is_damaged)
        if added := self._all_added():
            return [replace(trial, config=completed_config(trial.config, added)) for trial in trials]
        return trials

    def _tell(self, numbers: Iterable[int], later: Iterable[str], is_damaged: bool) -> None:
        """Warns of fields of a later version, and of missing trials unless damaged lines have been told already."""
        if later:
            where = self.path / (TRIALS if (self.path / TRIALS).exists() else TABLE)
            tell(f"{where} has fields that only a later autotune knows ({', '.join(later)}): they are kept unchanged")
        if is_damaged:
            return
        try:
            content = parse(content_of(self.path / VERDICT))
        except (OSError, Unsound):
            present = set(numbers)
            gaps = sorted(set(range(max(present, default=-1))) - present)
            if gaps:
                what = f"lacks {len(gaps)} trials, such as number {gaps[0]}"
                tell(f"{self.path} {what}: its figures cover only the other trials")
        else:
            tell_missing(self.path, content, numbers)

    def columns(self) -> TrialTable:
        """Returns all trials by column, as ``trials`` does."""
        if (self.path / TRIALS).exists() or self._all_added():
            return TrialTable.of(self.trials())
        table = self.table()
        tell_damaged(self.path / TABLE, table.damaged)
        self._tell(table.figures.get("number", ()), table.others, bool(table.damaged))
        return table

    def _recorded(self) -> list[Trial]:
        """Returns the trials with the configs that were recorded; warns of damaged lines. They are read once."""
        files = tuple(map(self.stamp, FILES))
        if self._read_trials is None or self._read_trials[0] != files:
            found, damaged = self._read_recorded()
            for name, lines in damaged.items():
                tell_damaged(self.path / name, lines)
            self._read_trials, self._is_damaged = (files, found), any(damaged.values())
        return self._read_trials[1]

    def _read_recorded(self) -> tuple[list[Trial], dict[str, dict[int, str]]]:
        """Returns the trials, and file -> damaged line -> why it is left out."""
        table, of_log = self.table(), dict[int, str]()
        trials, newer = table.trials(), list(read_log(self.path, of_log))
        if newer or len({trial.number for trial in trials}) < len(trials):
            trials = _newest([*trials, *newer])
        trials.sort(key=lambda trial: trial.number)
        return trials, {TABLE: dict(table.damaged), TRIALS: of_log}

    def stamp(self, name: str) -> tuple[int, ...]:
        with suppress(OSError):
            status = os.stat(self.path / name)
            return status.st_ino, status.st_mtime_ns, status.st_size
        return ()

    def table(self) -> TrialTable:
        """Returns the packed table; what cannot be read is in ``damaged``, line 0 being the whole file."""
        try:
            return read_table(self.path, self._known())
        except OSError as error:
            return TrialTable(damaged={0: f"it cannot be read: {error.strerror or error}"})
        except Unsound as error:
            return TrialTable(damaged={0: str(error)})

    def _known(self) -> Known:
        """Returns what the table does not say."""
        try:
            about = self.about()
        except Damaged:
            return {}
        return _known_of(about, self._of_verdict(stated_ceilings))

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
        """Returns the content of sweep.json, which is read again when it has changed.

        Raises:
            Damaged: when it cannot be read, or a later version wrote it.
        """
        file = self.stamp(SWEEP)
        if self._about is None or self._about[0] != file:
            self._about = file, read_json(self.path / SWEEP, self._about_of).completed(self._added)
        return self._about[1]

    def _about_of(self, content: Any) -> About:
        """Returns what the content of sweep.json says, with its setup."""
        if isinstance(content, dict) and type(written := content.get("format", FORMAT)) is int and written > FORMAT:
            raise Newer(f"was written by a newer autotune (format {written}, this one knows {FORMAT}): update autotune")
        own: Mapping[str, Any] = sealed(content, needed=isinstance(content, dict) and content.get("format") == FORMAT)
        if not isinstance(own, dict):
            raise Unsound("it is not a JSON object")
        members = {name: value for name, value in own.items() if name not in ("format", *SHARED)}
        for kind in SHARED:
            if (name := own.get(kind)) is not None and not isinstance(name, dict):
                members = {**self._shared(kind, name), **members}
            elif name is not None:  # an older record has the member "space"
                members[kind] = name
        return About.read(members)

    def _shared(self, kind: str, name: object) -> Mapping[str, Any]:
        if not isinstance(name, str) or not SHARED_NAME.fullmatch(name):
            raise Unsound(f"its {kind} is not a file of the form {kind}-<digest>.json")
        path = self.path.absolute().parent / name
        if not path.exists():
            raise Unsound(f"it lacks {path}: copy that file, too, from where the record was")
        found: Mapping[str, Any] = read_json(path, lambda each: sealed(each, needed=True))
        return found

    def of_space(self, space: Space) -> "SweepFolder":
        """Returns the folder with configs that include the parameters added to ``space`` later."""
        return SweepFolder(self.path, space.added) if space.added else self

    def _all_added(self) -> tuple[Parameter, ...]:
        """Returns the parameters that older configs lack, including those of sweep.json if that is not damaged."""
        with suppress(Damaged):
            return self.about().added
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
            return read_json(path, Digests.read)
        except Damaged as error:
            tell(f"{error}. It is ignored; `autotune digest` writes a new one")
            return Digests()

    def write_digests(self, digests: Digests) -> None:
        try:
            write_json(self.path / DIGESTS, digests.as_json())
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def write_outcome(self, outcome: Outcome) -> None:
        try:
            write_json(self.path / VERDICT, outcome.as_json(self._recorded(), _known_of_outcome(self.about())))
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def outcome(self) -> Outcome | None:
        """Returns the content of verdict.json; None if the file is missing or, with a warning, damaged."""
        return self._of_verdict(lambda content: self._outcome_of(content, self._recorded(), self._all_added()))

    def _of_verdict(self, check: Callable[[Any], T | None]) -> T | None:
        """Returns what ``check`` makes of verdict.json; None if the file is missing or, with a warning, damaged."""
        path = self.path / VERDICT
        if not path.exists():
            return None
        try:
            return read_json(path, check)
        except Damaged as error:
            tell(f"{error}. It is ignored; start the sweep again to write a new one")
            return None

    def _outcome_of(self, content: object, trials: list[Trial], added: Sequence[Parameter] = ()) -> Outcome:
        outcome, about = Outcome.read(content, trials, added), self.about()
        return replace(outcome, preference_among_ties=outcome.preference_among_ties or about.preference_among_ties)

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


def _known_of(about: About, ceilings: Ceilings | None) -> Known:
    """Returns the figures of a trial that follow from the work, the roofline, the protocol and the compiler."""
    known: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "compiler": ("code", lambda code: about.compiler if code else ""),
        "checks": ("rule", lambda rule: USUAL.get(rule, ())),
    }
    with suppress(TypeError, ValueError):  # a unit of a later version
        rates = rates_of(Work(**about.work), ceilings) if about.work else {}
        known |= {name: ("median_s", rate) for name, rate in rates.items()}
    with suppress(UsageError, Unsound):
        n_samples = as_count(protocol_of(about).n_samples)
        known["stopped_early"] = "n_samples", lambda n: n < n_samples
    return known


def _known_of_outcome(about: About) -> dict[str, object]:
    return {"preference_among_ties": about.preference_among_ties}


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


def _newest(trials: Iterable[Trial]) -> list[Trial]:
    """Returns the last of several lines of one trial, with the config of its first one.

    Later lines of a trial may have more parameters: those that its kernel's space has had only since then.
    """
    found: dict[int, dict[Config, Trial]] = {}
    for trial in trials:
        same = found.setdefault(trial.number, {})
        config = next((config for config in same if config.items() <= trial.config.items()), trial.config)
        same[config] = trial if config == trial.config else replace(trial, config=config)
    return [trial for same in found.values() for trial in same.values()]
