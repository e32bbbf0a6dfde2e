"""The outcome of a sweep: the configs of its final round, the winner first. verdict.json contains it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.device import Ceilings
from ..core.errors import Status
from ..core.parameter import Parameter, completed_config
from .damage import tell
from .figure import figures_of
from .measurement import Measurement, Sustained
from .trial import Trial
from .trial_log import TRIALS

VERDICT = "verdict.json"
SAME = 0.005  # medians within half a percent are the same in practice


class Relation(StrEnum):
    """How the time of one config compares with another one's."""

    FASTEST = "fastest"  # the fastest of a final round
    BEST = "best"  # the best by another objective
    WORSE = "worse"
    FRONT = "front"  # with two objectives: no config beats it in both
    FASTER = "faster"
    SAME = "same"
    AMBIGUOUS = "ambiguous"  # medians differ, and their intervals overlap
    SLOWER = "slower"


UNNUMBERED = -1  # the number of a finalist whose record lacks it


@dataclass(frozen=True)
class Finalist(Trial):
    """A trial with its best measurement: from the final round, or from the search if there was no final round.

    Times are in seconds; rates correspond to ``median_s``. Fields that an older record lacks are None or empty.
    """

    median_s: float = 0.0
    relation: str = ""  # how it compares with the fastest: a Relation, or "" without a final round
    interval_s: tuple[float, float] | None = None  # 95 % confidence interval of the median
    sustained: Sustained | None = None  # None if it was not requested
    checked_launches: int = 0  # further launches of the winner, all correct

    @staticmethod
    def measured(trial: Trial, m: Measurement, relation: Relation) -> "Finalist":
        """Returns a config of a final round; ``trial`` must have a time."""
        scale = (trial.median_s or m.median_s) / m.median_s
        rates = {name: None if (rate := getattr(trial, name)) is None else scale * rate for name in RATES}
        own = {field.name: value for field in fields(m) if (value := getattr(m, field.name)) is not None}
        return Finalist(**vars(trial) | rates | own | {"interval_s": m.interval(), "relation": relation})

    @staticmethod
    def of_search(trial: Trial) -> "Finalist":
        """Returns a measured config with the times of its trial."""
        return Finalist(**vars(trial))

    @staticmethod
    def read(row: Mapping[str, Any], added: Sequence[Parameter] = ()) -> "Finalist":
        """Returns a finalist from a checked row of verdict.json; its config gets the ``added`` parameters."""
        own = {name: value for name, value in row.items() if name in _FIELDS and value is not None}
        figure = own.pop("sustained", None)
        sustained = Sustained(**{"duration_s": 0.0, **figure}) if figure else None
        unsaid = {"number": UNNUMBERED, "key": None, "status": Status.MEASURED, "stamp": ""}
        return Finalist(**{**unsaid, **own, "config": completed_config(row["config"], added), "sustained": sustained})

    def as_json(self) -> dict[str, object]:
        """Returns the row for verdict.json."""
        row = {name: getattr(self, name) for name in VERDICT_FIGURES} | {"relation": self.relation}
        row |= {"number": None if self.number == UNNUMBERED else self.number, "config": dict(self.config)}
        row |= {name: list(value) for name, value in row.items() if isinstance(value, tuple)}
        row["interval_s"] = list(self.interval_s) if self.interval_s else None
        if self.sustained:
            row["sustained"] = asdict(self.sustained)
        if self.checked_launches:
            row["checked_launches"] = self.checked_launches
        return row


RATES = ("gb_per_s", "tflop_per_s", "efficiency")
VERDICT_FIGURES = tuple(name for name, figure in figures_of(Trial).items() if figure.in_verdict)
_FIELDS = {field.name for field in fields(Finalist)}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sweep. Fields that an older record lacks are None or empty.

    ``stamps``: number -> stamp of the trials from which it was computed. ``content``: the whole content of
    verdict.json, if the outcome was read from it.
    """

    winner: Finalist
    default: Finalist | None = None
    speed_up: float | None = None  # the default's median divided by the winner's
    objectives: tuple[str, ...] = ("time",)  # the winner is the best by the first; a second one defines a front
    ties: tuple[int, ...] = ()  # numbers of the finalists that are as fast as the winner
    preference_among_ties: str = ""
    finalist_samples: int = 0
    placements: int = 0
    checked_launches: int = 0  # requested further launches of the winner
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
    def read(content: Mapping[str, Any], added: Sequence[Parameter] = ()) -> "Outcome":
        """Returns the outcome from a checked verdict.json; its configs get the ``added`` parameters."""
        own = {f.name: content[f.name] for f in fields(Outcome) if content.get(f.name) is not None}
        finalists = tuple(Finalist.read(row, added) for row in content["finalists"])
        default = content.get("default")
        own |= {"winner": Finalist.read(content["winner"], added)}
        own |= {"default": Finalist.read(default, added) if default else None}
        return Outcome(**own | {"finalists": finalists, "ceilings": None, "content": content})

    def as_json(self) -> dict[str, object]:
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
        """Returns the finalist with ``config``; None if the final round did not include it."""
        return next((each for each in self.finalists if each.config == config), None)

    def is_of(self, trials: Iterable[Trial]) -> bool:
        """Returns whether it was computed from these trials; that may be false if sources changed and changed back.

        An older outcome without stamps was computed from them if they include all of its finalists.
        """
        stamps = {str(trial.number): trial.stamp for trial in trials}
        if self.stamps is not None:
            return bool(self.stamps == stamps)
        return all(str(finalist.number) in stamps for finalist in self.finalists)


@dataclass(frozen=True)
class Missing:
    """The trials from which the outcome was computed and that are missing or changed now.

    ``numbers``: their known numbers; in an older outcome only numbers of finalists are known.
    """

    n: int
    numbers: tuple[int, ...]


def missing(outcome: Outcome, trials: Iterable[Trial]) -> Missing:
    """Returns the trials of ``outcome`` that ``trials`` lacks, judged by ``stamps`` or the sum of ``counts``."""
    present = {trial.number: trial.stamp for trial in trials}
    if outcome.stamps is not None:
        gone = sorted(int(number) for number, stamp in outcome.stamps.items() if present.get(int(number)) != stamp)
        return Missing(len(gone), tuple(gone))
    named = {f.number for f in outcome.finalists if f.number != UNNUMBERED}
    gone = sorted(named - present.keys())
    return Missing(max(len(gone), sum((outcome.counts or {}).values()) - len(present)), tuple(gone))


def tell_missing(path: Path, outcome: Outcome, trials: Iterable[Trial]) -> None:
    """Warns if trials behind the outcome of the sweep at ``path`` are missing."""
    gone = missing(outcome, trials)
    if gone.n:
        numbers = f" (numbers {', '.join(map(str, gone.numbers[:5]))}{', ...' * (gone.n > 5)})" if gone.numbers else ""
        tell(
            f"{path / TRIALS} lacks {gone.n} trials{numbers} from which its {VERDICT} was computed: the outcome "
            "stands, but the search's figures cover only the other trials; start the sweep again to replace them"
        )
