"""The objectives of a sweep: the least time of a launch, its least energy, or metrics computed from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from typing import Literal, TypeVar

from ..core.errors import UsageError
from ..core.expressions import checked_expression, value_of
from .figure import figures_of
from .trial import Trial

TIME, ENERGY, POWER = "time", "energy", "power"
FIGURES = {  # name in metrics -> field of a trial
    TIME: "median_s",
    ENERGY: "joules",
    POWER: "watts",
    **{name: name for name, figure in figures_of(Trial).items() if figure.in_metrics},
}
UNITS = {TIME: "s", ENERGY: "J"}
LARGEST = "max:"  # prefix of an objective whose largest value is the best
MOST = 2
Direction = Literal["minimize", "maximize"]
T = TypeVar("T")
M = TypeVar("M", bound=Trial)


@dataclass(frozen=True)
class Objective:
    """A figure or a metric; its least value is the best, or with ``largest`` its largest."""

    name: str
    largest: bool = False

    @staticmethod
    def read(text: str) -> "Objective":
        """Returns the objective of a text such as ``energy`` or ``max:gflops``."""
        return Objective(text.removeprefix(LARGEST).removeprefix("min:"), text.startswith(LARGEST))

    @property
    def direction(self) -> "Direction":
        return "maximize" if self.largest else "minimize"

    @property
    def title(self) -> str:
        """Returns the name, with the unit if there is one."""
        return f"{self.name} ({UNITS[self.name]})" if self.name in UNITS else self.name

    def __str__(self) -> str:
        return f"{LARGEST if self.largest else ''}{self.name}"

    def rank(self, values: Mapping[str, float]) -> float:
        """Returns a number that is smaller for a better value."""
        value = values[self.name]
        return -value if self.largest else value


@dataclass(frozen=True)
class Objectives:
    """The objectives of a sweep, and the metrics that it computes; the first objective decides on the winner.

    ``known``: the fields of the problem. A metric may use these, the parameters, the FIGURES, and earlier metrics.
    """

    each: tuple[Objective, ...] = (Objective(TIME),)
    metrics: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, object] = field(default_factory=dict)

    @staticmethod
    def read(
        texts: Sequence[str], metrics: Mapping[str, str], problem: Mapping[str, object], parameters: Iterable[str]
    ) -> "Objectives":
        """Returns the objectives with these names.

        Raises:
            UsageError: for an unknown name, too many objectives, or a metric that is not an expression.
        """
        names = [*problem, *parameters, *FIGURES]
        code = {}
        for name, text in metrics.items():
            if not name.isidentifier() or name in names:
                why = "is taken" if name in names else "is not an identifier"
                raise UsageError(f"the metric name {name!r} {why}; write --metric name=expression")
            code[name] = checked_expression(text, names, f"the metric {name}")
            names.append(name)
        each = tuple(map(Objective.read, texts))
        for objective in each:
            if objective.name not in (TIME, ENERGY, *metrics):
                choices = ", ".join((TIME, ENERGY, *metrics))
                raise UsageError(
                    f"there is no objective {objective.name!r}; there are {choices}, and --metric name=expression adds "
                    f"others; {LARGEST}{objective.name} searches for the largest value"
                )
        if not 1 <= len({objective.name for objective in each}) == len(each) <= MOST:
            raise UsageError(f"the objectives are {', '.join(texts) or 'none'}; give one, or two different ones")
        return Objectives(each, code, dict(problem))

    @property
    def first(self) -> Objective:
        return self.each[0]

    @property
    def is_time(self) -> bool:
        """Returns whether the sweep only searches for the fastest config."""
        return self.each == (Objective(TIME),)

    @cached_property
    def needs_energy(self) -> bool:
        """Returns whether the energy of each config must be measured."""
        return any(each.name == ENERGY for each in self.each) or any(
            f"c['{name}']" in code for code in self.metrics.values() for name in (ENERGY, POWER)
        )

    @property
    def directions(self) -> "tuple[Direction, ...]":
        return tuple(objective.direction for objective in self.each)

    def best(self, trials: Iterable[M]) -> M | None:
        """Returns the best trial by the first objective; None if no values are known."""
        return next(iter(self.ranked(trials)), None)

    def ranked(self, trials: Iterable[M]) -> list[M]:
        """Returns the trials whose values are known, in the order of the first objective, the best first."""
        return sorted((each for each in trials if self.values(each) is not None), key=self.rank)

    def rank(self, trial: Trial) -> float:
        """Returns a number that is smaller for a better first objective; infinite if a value is unknown."""
        values = self.values(trial)
        return inf if values is None else self.first.rank(values)

    def lacks_energy(self, trial: Trial) -> bool:
        """Returns whether a measured trial lacks the energy that the objectives need."""
        return self.needs_energy and trial.median_s is not None and trial.joules is None

    def check_energy(self, trial: Trial, device: str) -> None:
        """Raises UsageError if a trial was measured, but the device has no energy meter."""
        if self.lacks_energy(trial):
            raise UsageError(
                f"{device} does not report its energy; that needs NVML's counter and the package nvidia-ml-py "
                "(autotune doctor). Leave out the objective energy"
            )

    def with_metrics(self, trial: Trial) -> Trial:
        """Returns a trial with the metrics that are computed from its figures."""
        return replace(trial, metrics=self.computed(trial)) if trial.median_s and self.metrics else trial

    def computed(self, of: Trial) -> dict[str, float]:
        """Returns the metrics of a trial, without those that cannot be computed."""
        figures = {name: getattr(of, own) for name, own in FIGURES.items()}
        values = {**self.known, **dict(of.config)}
        values |= {name: value for name, value in figures.items() if value is not None}
        metrics: dict[str, float] = {}
        for name, code in self.metrics.items():
            try:
                value = float(value_of(code, {**values, **metrics}))
            except (ArithmeticError, KeyError, TypeError, ValueError):
                continue
            if isfinite(value):
                metrics[name] = value
        return metrics

    def values(self, trial: Trial) -> dict[str, float] | None:
        """Returns objective -> value; None unless all values are known."""
        return values_of(self.each, trial)


def read_metrics(texts: Iterable[str]) -> dict[str, str]:
    """Returns name -> expression, for texts such as ``gbps=8*n/time/1e9``.

    Raises:
        UsageError: for a text without a name, or a repeated name.
    """
    metrics: dict[str, str] = {}
    for text in texts:
        name, equals, expression = (part.strip() for part in text.partition("="))
        if not equals or not name or not expression:
            raise UsageError(f"the metric {text!r} is not NAME=EXPRESSION; write gbps=8*n/time/1e9")
        if name in metrics:
            raise UsageError(f"the metric {name} is given twice")
        metrics[name] = expression
    return metrics


FASTEST = Objectives()  # the default objectives


def values_of(objectives: Iterable[Objective], trial: Trial) -> dict[str, float] | None:
    """Returns objective -> value at a trial; None unless all values are known."""
    values: dict[str, float | None] = {}
    for objective in objectives:
        if objective.name == TIME:
            values[TIME] = trial.median_s
        elif objective.name == ENERGY:
            values[ENERGY] = trial.joules
        else:
            values[objective.name] = trial.metrics.get(objective.name)
    if trial.median_s is None or any(value is None for value in values.values()):
        return None
    return {name: value for name, value in values.items() if value is not None}


def front(objectives: Sequence[Objective], trials: Iterable[M]) -> list[M]:
    """Returns the trials that no other one beats in all objectives (the Pareto front), by the first objective."""
    pairs = [(values, each) for each in trials if (values := values_of(objectives, each)) is not None]
    return unbeaten([(tuple(o.rank(values) for o in objectives), each) for values, each in pairs])


def unbeaten(ranked_items: Iterable[tuple[tuple[float, ...], T]]) -> list[T]:
    """Returns the items that no other one beats in all of their one or two ranks, in the order of the first rank."""
    kept: list[T] = []
    least = inf
    for ranks, each in sorted(ranked_items, key=lambda x: x[0]):
        if not kept or (len(ranks) > 1 and ranks[-1] < least):
            kept.append(each)
            least = ranks[-1]
    return kept
