"""How a sweep ended: the configs of its final round, the winner first. verdict.json holds it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..devices.base import Ceilings
from ..trial.measure import Measurement, Sustained
from ..trial.row import Trial
from .damage import tell
from .trials import TRIALS

VERDICT = "verdict.json"


class Relation(StrEnum):
    """How the time of one config compares with that of another."""

    FASTEST = "fastest"  # the fastest of a final round
    BEST = "best"  # the best by another objective
    WORSE = "worse"
    FRONT = "front"  # of two objectives: none beats it in both
    FASTER = "faster"
    SAME = "same"
    AMBIGUOUS = "ambiguous"  # medians differ, and their intervals overlap
    SLOWER = "slower"


@dataclass(frozen=True)
class Finalist:
    """A config with its best measurement: that of the final round, or of its trial where there was none.

    Times are in seconds. What an older record does not say is None or empty.
    """

    number: int | None  # number of its trial
    config: Config
    key: str | None
    median_s: float
    compiler: str = ""
    code: str = ""
    conditions: str = ""
    relation: str = ""  # how it compares with the fastest: a Relation, or "" where there was no final round
    q1_s: float | None = None
    q3_s: float | None = None
    interval_s: tuple[float, float] | None = None  # 95 % confidence interval of the median
    samples_s: tuple[float, ...] = ()
    clock_hz: float | None = None
    cold: bool | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    max_error: float | None = None  # relative to rms(reference)
    rms_error: float | None = None
    verified_on: tuple[str, ...] = ()
    joules: float | None = None  # energy of the device for one launch: of the sustained run, or of the trial
    watts: float | None = None  # mean power meanwhile
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)
    sustained: Sustained | None = None  # None where it was not asked for
    checked_launches: int = 0  # further launches of the winner, all correct

    @staticmethod
    def measured(trial: Trial, m: Measurement, relation: Relation) -> "Finalist":
        """Returns a config of a final round."""
        times = {name: getattr(m, name) for name in ("median_s", "q1_s", "q3_s", "samples_s", "clock_hz", "cold")}
        errors = {"max_error": m.max_error, "rms_error": m.rms_error}
        return Finalist(**_common(trial) | times | errors | {"interval_s": m.interval(), "relation": relation})

    @staticmethod
    def of_search(trial: Trial) -> "Finalist":
        """Returns a measured config as its trial found it."""
        return Finalist(**_common(trial))

    @staticmethod
    def read(row: Mapping[str, Any]) -> "Finalist":
        """Returns the finalist of a row that record_schema has checked."""
        own = {name: value for name, value in row.items() if name in _FIELDS}
        figure = row.get("sustained")
        sustained = Sustained(**{"duration_s": 0.0, **figure}) if figure else None
        return Finalist(**{"number": None, "key": None, **own, "config": Config(row["config"]), "sustained": sustained})

    def as_json(self) -> dict[str, Any]:
        """Returns the row as verdict.json holds it."""
        row = {name: getattr(self, name) for name in _WRITTEN}
        row |= {"config": dict(self.config), "samples_s": list(self.samples_s), "verified_on": list(self.verified_on)}
        row["metrics"] = dict(self.metrics)
        row["interval_s"] = list(self.interval_s) if self.interval_s else None
        if self.sustained:
            row["sustained"] = asdict(self.sustained)
        if self.checked_launches:
            row["checked_launches"] = self.checked_launches
        return row


_FIELDS = {f.name for f in fields(Finalist)}
_OF_A_TRIAL = _FIELDS & {f.name for f in fields(Trial)}
_WRITTEN = (
    *("number", "config", "key", "compiler", "code", "conditions", "relation"),
    *("median_s", "q1_s", "q3_s", "interval_s", "samples_s", "clock_hz", "cold"),
    *("registers", "shared_bytes", "spill_bytes", "max_error", "rms_error", "verified_on"),
    *("joules", "watts", "metrics"),
)


def _common(trial: Trial) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in _OF_A_TRIAL}


@dataclass(frozen=True)
class Outcome:
    """How a sweep ended. What an older record does not say is None or empty.

    ``stamps`` are those of the trials that it was made from, by number. ``content`` is all that verdict.json said,
    where the outcome was read from it.
    """

    winner: Finalist
    default: Finalist | None = None
    speed_up: float | None = None  # the default's median over the winner's
    objectives: tuple[str, ...] = ("time",)  # what the winner is best at; with a second one it is one of a front
    ties: tuple[int, ...] = ()  # numbers of the configs of the final round that are as fast as the winner
    preference_among_ties: str = ""
    finalist_samples: int = 0
    placements: int = 0
    checked_launches: int = 0  # further launches of the winner that were asked for
    finalists: tuple[Finalist, ...] = ()  # the winner first
    counts: Mapping[str, int] | None = None  # trials by status
    stamps: Mapping[str, str] | None = None
    n_configs: int | None = None
    ceilings: Ceilings | None = None
    spent_s: Mapping[str, float] = field(default_factory=dict)
    idle_share: float | None = None
    compile_processes: int | None = None
    content: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def read(content: Mapping[str, Any]) -> "Outcome":
        """Returns the outcome of a verdict.json that record_schema has checked."""
        own = {f.name: content[f.name] for f in fields(Outcome) if content.get(f.name) is not None}
        finalists = tuple(map(Finalist.read, content["finalists"]))
        default = content.get("default")
        own |= {"winner": Finalist.read(content["winner"]), "default": Finalist.read(default) if default else None}
        return Outcome(**own | {"finalists": finalists, "ceilings": None, "content": content})

    def as_json(self) -> dict[str, Any]:
        """Returns the content of verdict.json."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "content"}
        return content | {
            "winner": self.winner.as_json(),
            "default": self.default.as_json() if self.default else None,
            "ties": list(self.ties),
            "finalists": [finalist.as_json() for finalist in self.finalists],
            "ceilings": asdict(self.ceilings) if self.ceilings else None,
        }

    def finalist(self, config: Config) -> Finalist | None:
        """Returns ``config`` as the final round found it; None where it was not in it."""
        return next((each for each in self.finalists if each.config == config), None)

    def is_of(self, trials: Iterable[Trial]) -> bool:
        """Returns whether it was made from these trials; it may be of others if sources changed and changed back.

        An outcome from before it said so was made from them if all of its finalists are among them.
        """
        stamps = {str(trial.number): trial.stamp for trial in trials}
        if self.stamps is not None:
            return bool(self.stamps == stamps)
        return all(str(finalist.number) in stamps for finalist in self.finalists)


@dataclass(frozen=True)
class Missing:
    """Trials that a outcome was made from and that are not recorded any more, or not as they were.

    ``numbers``: of those that are known by their numbers, which of an older one are the finalists only.
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
