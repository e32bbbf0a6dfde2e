"""The outcome of a sweep: the configs of its final round, the winner first. verdict.json contains it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from ..core.config import Config
from ..core.device import Ceilings, as_ceilings
from ..core.errors import Status
from ..core.parameter import Parameter, completed_config
from ..core.schema import (
    Unsound,
    as_amount,
    as_count,
    as_integer,
    as_json_value,
    as_number,
    as_seconds,
    as_text,
    as_word,
    dataclass_of,
    mapping_of,
    optional,
    sealed,
    sequence_of,
    value_text,
)
from .cell import TEXT, samples_of, samples_text
from .damage import tell
from .figure import Figure, as_members, checked_fields, defaults_of, figures_of, stated
from .measurement import DIGITS, Measurement, Sustained, interval_of, summary_of
from .objectives import TIME
from .trial import Trial, trial_number, trial_number_text

VERDICT = "verdict.json"
OF_FINALISTS = ("winner", "default", "finalists")  # members that Outcome.read reads itself
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


_TIES = "numbers of the trials that are as fast as the fastest; the rule that chose among them"
_ROUND = (
    "timed launches of each finalist in one placement of the buffers; number of placements, for close finalists; "
    "launches of the winner whose outputs were to be checked (the winner's own `checked_launches` says how many were)"
)
_COUNTS = "number of trials by status; number of allowed configs"
_TRIALS = "numbers of the trials behind it, as runs from the first to the last"
_SPENT = "wall time by activity; the share of it in which the device had nothing to do; processes that compiled"
_ceilings = optional(as_ceilings)
_sustained = optional(dataclass_of(Sustained, needed=("short_s", "sustained_s", "n")))
_interval = optional(sequence_of(as_seconds, 2))


def stated_ceilings(content: object) -> Ceilings | None:
    """Returns the roofline in the content of a verdict.json. Raises Unsound."""
    found: Ceilings | None = _ceilings(sealed(content).get("ceilings")) if isinstance(content, dict) else None
    return found


UNNUMBERED = -1  # the number of a finalist whose record lacks it
RATES = ("gb_per_s", "tflop_per_s", "efficiency")


@dataclass(frozen=True, kw_only=True)
class Finalist(Trial):
    """A trial with its best measurement: from the final round, or from the search if there was no final round.

    Times are in seconds; rates correspond to ``median_s``. Fields that an older record lacks are None or empty.
    """

    median_s: Annotated[float, Figure(as_seconds, figures_of(Trial)["median_s"].meaning, "s", in_verdict=True)] = 0.0
    relation: Annotated[
        str, Figure(as_word, "how it compares with the fastest: a Relation", cell=TEXT, in_verdict=True)
    ] = ""
    interval_s: Annotated[
        tuple[float, float] | None,
        Figure(_interval, "95 % confidence interval of the median", "s", plain=list, in_verdict=True),
    ] = None
    sustained: Annotated[
        Sustained | None, Figure(_sustained, "times of many back-to-back launches", plain=asdict, in_verdict=True)
    ] = None
    checked_launches: Annotated[
        int, Figure(as_count, "further launches of the winner, all correct", in_verdict=True)
    ] = 0

    @staticmethod
    def measured(trial: Trial, m: Measurement, relation: Relation) -> "Finalist":
        """Returns a config of a final round, as its record gives it back; ``trial`` must have a time."""
        samples_s = tuple(samples_of(samples_text(m.samples_s)))
        own = {field.name: value for field in fields(m) if (value := getattr(m, field.name)) is not None}
        own |= {"samples_s": samples_s, "relation": relation, **_following(samples_s, vars(trial), {})}
        return Finalist(**vars(trial) | own)

    @staticmethod
    def of_search(trial: Trial) -> "Finalist":
        """Returns a measured config with the times of its trial."""
        return Finalist(**vars(trial))

    @staticmethod
    def of_row(row: object, trials: Mapping[int, Trial], added: Sequence[Parameter] = ()) -> "Finalist":
        """Returns a finalist from a row of verdict.json: its trial, with what the row states beside.

        An older row states all. Its config gets the ``added`` parameters.

        Raises:
            Unsound: when the row is invalid, or neither it nor a trial has its config and its time.
        """
        if not isinstance(row, dict):
            raise Unsound(f"is {value_text(row)}, must be an object")
        found = checked_fields(Finalist, row, (), IGNORED)
        trial = trials.get(found.get("number", UNNUMBERED))
        base = {} if trial is None else vars(trial)
        own = {name: value for name, value in found.items() if value is not None}
        base = {**base, **own, **_following(own.get("samples_s") or (), base, own)}
        for name in ("config", "median_s"):
            if name not in base:
                raise Unsound(f"lacks {name}" if trial or not found.get("number") else "is of a trial that is missing")
        config = completed_config(base["config"], added)
        return Finalist(**{"number": UNNUMBERED, "status": Status.MEASURED, **base, "config": config})

    def as_json(self) -> dict[str, object]:
        """Returns all figures of the final round, for people and exports."""
        row = {name: f.json(getattr(self, name)) for name, f in figures_of(Finalist).items() if f.in_verdict}
        row |= {"number": None if self.number == UNNUMBERED else self.number, "samples_s": list(self.samples_s)}
        return {name: value for name, value in row.items() if name not in SELDOM or value}

    def as_row(self, trial: Trial | None) -> dict[str, object]:
        """Returns the row for verdict.json: what differs from its ``trial``, and does not follow from the samples."""
        known: dict[str, Any] = dict(vars(trial)) if trial is not None else {}
        known |= _following(self.samples_s, known, {}) | _following(self.samples_s, known, {"median_s": self.median_s})
        row: dict[str, object] = {}
        for name, figure in figures_of(Finalist).items():
            value = getattr(self, name)
            if value != DEFAULTS.get(name) and (name == "number" or not figure.is_same(value, known.get(name))):
                row[name] = figure.json(value)
        if self.number == UNNUMBERED:
            del row["number"]
        return row


def _following(samples_s: Sequence[float], trial: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of a finalist that follow from its samples and its trial, except those in ``own``."""
    found: dict[str, Any] = {}
    if samples_s:
        found = {**summary_of(samples_s), "interval_s": interval_of(samples_s), "n_samples": len(samples_s)}
    median_s, before_s = own.get("median_s", found.get("median_s")), trial.get("median_s")
    if median_s and before_s:
        found |= {name: rate * before_s / median_s for name in RATES if (rate := trial.get(name)) is not None}
    return {name: _short(value) for name, value in found.items() if name not in own}


def _short(value: Any) -> Any:
    """Returns a value with its fractions rounded to what is known of them."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list | tuple):
        return type(value)(_short(each) for each in value)
    return {name: _short(each) for name, each in value.items()} if isinstance(value, dict) else value


SELDOM = ("sustained", "checked_launches", "checks")  # figures that as_json states only if they are there
DEFAULTS = defaults_of(Finalist)
IGNORED = ("reproduce",)  # members of older versions that follow from others


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a sweep. Fields that an older record lacks are None or empty."""

    winner: Finalist
    default: Finalist | None = None
    finalists: tuple[Finalist, ...] = ()  # the winner first
    speed_up: Annotated[float | None, Figure(optional(as_amount), "the default's median over the winner's")] = None
    objectives: Annotated[
        tuple[str, ...],
        Figure(sequence_of(as_text), "what the sweep looked for; the first decided on the winner", plain=list),
    ] = (TIME,)
    ties: Annotated[tuple[int, ...], Figure(sequence_of(as_integer), _TIES, plain=list)] = ()
    preference_among_ties: Annotated[str, Figure(as_text, _TIES)] = ""
    finalist_samples: Annotated[int, Figure(as_count, _ROUND)] = 0
    placements: Annotated[int, Figure(as_count, _ROUND)] = 0
    checked_launches: Annotated[int, Figure(as_count, _ROUND)] = 0
    counts: Annotated[
        Mapping[str, int] | None, Figure(optional(mapping_of(as_word, as_count)), _COUNTS, plain=dict)
    ] = None
    n_configs: Annotated[int | None, Figure(optional(as_count), _COUNTS)] = None
    trials: Annotated[
        tuple[tuple[int, int], ...] | None,
        Figure(
            optional(sequence_of(sequence_of(trial_number, 2))),
            _TRIALS,
            plain=lambda runs: [list(run) for run in runs],
        ),
    ] = None
    verified_on: Annotated[
        tuple[str, ...],
        Figure(sequence_of(as_text), "the winner's sizes, where the kernel is not an installed one", plain=list),
    ] = ()
    ceilings: Annotated[
        Ceilings | None,
        Figure(
            _ceilings,
            "the measured roofline: bytes/s of a copy, flop/s of multiply-adds; null where there is none",
            plain=asdict,
        ),
    ] = None
    spent_s: Annotated[Mapping[str, float], Figure(mapping_of(as_word, as_amount), _SPENT, plain=dict)] = field(
        default_factory=dict
    )
    idle_share: Annotated[float | None, Figure(optional(as_number), _SPENT)] = None
    compile_processes: Annotated[int | None, Figure(optional(as_count), _SPENT)] = None
    others: Mapping[str, object] = field(default_factory=dict)  # members of a later version, unchanged

    @staticmethod
    def read(content: object, trials: Iterable[Trial], added: Sequence[Parameter] = ()) -> "Outcome":
        """Returns the outcome that a verdict.json states of these trials; its configs get the ``added`` parameters.

        Raises:
            Unsound: when a member is missing or invalid.
        """
        row: dict[str, Any] = sealed(content)
        members = {name: row[name] for name in row if name not in OF_FINALISTS} if isinstance(row, dict) else row
        trials = list(trials)
        found = checked_fields(Outcome, members, (), ("stamps",))
        found["trials"] = _runs_behind(row)
        by_number = {trial.number: trial for trial in trials}
        rows = _rows_of(row.get("finalists") or [])
        finalists = tuple(_named("finalists", each, by_number, added) for each in rows)
        if finalists and "winner" not in row:
            default = row.get("default")
            by = {finalist.number: finalist for finalist in finalists}
            found |= {"winner": finalists[0], "default": by.get(default) if isinstance(default, int) else None}
        elif "winner" not in row:
            raise Unsound("lacks winner")
        else:
            found["winner"] = _named("winner", row["winner"], by_number, added)
        if isinstance(row.get("default"), dict):
            found["default"] = _named("default", row["default"], by_number, added)
        found.setdefault("counts", counts_of(trials, found.get("trials")))
        if finalists and not any(finalist.config == found["winner"].config for finalist in finalists):
            raise Unsound("the winner is not among the finalists")
        return Outcome(**found, finalists=finalists)

    @property
    def content(self) -> Mapping[str, object]:
        """Returns all members as JSON, for people and exports."""
        rows = [finalist.as_json() for finalist in self.finalists]
        chosen = {"winner": self.winner.as_json(), "default": self.default.as_json() if self.default else None}
        return {**chosen, "finalists": rows, **as_members(self)}

    def as_json(self, trials: Iterable[Trial], known: Mapping[str, object]) -> dict[str, object]:
        """Returns the content of verdict.json: of a finalist, what its trial does not say.

        ``known``: members that the sweep's description says.
        """
        trials = list(trials)
        by_number = {trial.number: trial for trial in trials}
        if self.counts == counts_of(trials, self.trials):
            known = {**known, "counts": self.counts}
        content = {name: value for name, value in stated(self).items() if name not in known or value != known[name]}
        rows = [each.as_row(by_number.get(each.number)) for each in self.finalists]
        if rows:
            content["finalists"] = _in_columns(rows)
        if self.winner not in self.finalists[:1]:
            content["winner"] = self.winner.as_row(by_number.get(self.winner.number))
        if self.default is not None:
            is_named = self.default in self.finalists and self.default.number != UNNUMBERED
            row = self.default.as_row(by_number.get(self.default.number))
            content["default"] = self.default.number if is_named else row
        return {name: _short(value) for name, value in content.items()}

    def finalist(self, config: Config) -> Finalist | None:
        """Returns the finalist with ``config``; None if the final round did not include it."""
        return next((each for each in self.finalists if each.config == config), None)

    def won(self, fastest: Config) -> Config | None:
        """Returns the winner of a final round for the least time that the ``fastest`` of the search took part in."""
        return self.winner.config if self.objectives == (TIME,) and self.finalist(fastest) else None

    def is_of(self, trials: Iterable[Trial]) -> bool:
        """Returns whether it was computed from these trials, whose numbers are never used again.

        An older outcome was computed from them if they include all of its finalists.
        """
        numbers = {trial.number for trial in trials}
        if self.trials is not None:
            return runs_of(numbers) == self.trials
        return all(finalist.number in numbers for finalist in self.finalists)


def speed_up_interval(best: Finalist | None, default: Finalist | None) -> tuple[float, float] | None:
    """Returns the smallest and the largest speed-up that two 95 % confidence intervals allow; None: unknown."""
    if best is None or default is None or best.interval_s is None or default.interval_s is None:
        return None
    (best_low, best_high), (low, high) = best.interval_s, default.interval_s
    return low / best_high, high / best_low


def counts_of(trials: Iterable[Trial], runs: tuple[tuple[int, int], ...] | None) -> dict[str, int] | None:
    """Returns the number of trials by status, of those with a number in ``runs``."""
    if runs is None:
        return None
    counts = Counter(t.status for t in trials if any(first <= t.number <= last for first, last in runs))
    return {str(status): n for status, n in counts.items()}


def _in_columns(rows: Sequence[Mapping[str, object]]) -> list[list[object]]:
    """Returns rows as a table: names, and the values of each row; null where a row lacks a name."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [list[object](names), *([row.get(name) for name in names] for row in rows)]


def _rows_of(rows: object) -> list[Any]:
    """Returns the rows of ``_in_columns``; older records have objects."""
    if not isinstance(rows, list):
        raise Unsound(f"finalists is {value_text(rows)}, must be a list")
    if not rows or not isinstance(rows[0], list):
        return rows
    names, *values = rows
    if any(not isinstance(row, list) or len(row) != len(names) for row in rows) or not all(
        isinstance(name, str) for name in names
    ):
        raise Unsound("finalists is not a table of names and as many values in each row")
    pairs = (zip(names, row, strict=True) for row in values)
    return [{name: value for name, value in each if value is not None} for each in pairs]


def _named(name: str, row: object, trials: Mapping[int, Trial], added: Sequence[Parameter]) -> Finalist:
    try:
        return Finalist.of_row(row, trials, added)
    except Unsound as error:
        raise Unsound(f"{name} {error}") from None


def runs_of(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Returns numbers as runs (first, last): 0, 1, 2, 5 are (0, 2), (5, 5)."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return tuple(runs)


def _runs_behind(content: Mapping[str, Any]) -> tuple[tuple[int, int], ...] | None:
    """Returns the numbers of the trials behind an outcome as runs; None if it says none. Older ones have stamps."""
    if "stamps" in content and "trials" not in content:
        return runs_of(map(int, _stamps(content["stamps"])))
    runs: tuple[tuple[int, int], ...] | None = OUTCOME["trials"].check(content.get("trials"))
    return runs


def missing(content: Any, numbers: Iterable[int]) -> tuple[int, list[int]]:
    """Returns how many trials of a verdict.json are not among ``numbers``, and those whose numbers it says.

    An older one says the numbers of its finalists alone, and how many trials there were.
    """
    content, present = content if isinstance(content, dict) else {}, set(numbers)
    try:
        runs = _runs_behind(content)
        counts = OUTCOME["counts"].check(content.get("counts")) or {}
        rows = [row for row in _rows_of(content.get("finalists") or []) if isinstance(row, dict)]
    except Unsound:
        return 0, []
    if runs is None:
        named = {int(row["number"]) for row in rows if str(row.get("number")).isdecimal()}
    else:
        named = {number for first, last in runs for number in range(first, last + 1)}
    gone = sorted(named - present)
    return len(gone) if runs is not None else max(len(gone), sum(counts.values()) - len(present)), gone


def tell_missing(path: Path, content: Any, numbers: Iterable[int]) -> None:
    """Warns if trials behind the outcome of the sweep at ``path`` are missing.

    ``content``: of its verdict.json. ``numbers``: of the trials that are there.
    """
    n, gone = missing(content, numbers)
    if n:
        named = f" (numbers {', '.join(map(str, gone[:5]))}{', ...' * (len(gone) > 5)})" if gone else ""
        tell(
            f"{path} lacks {n} trials{named} from which its {VERDICT} was computed: the outcome "
            "stands, but the search's figures cover only the other trials; start the sweep again to replace them"
        )


OUTCOME = figures_of(Outcome)
_stamps = mapping_of(trial_number_text, as_json_value)
