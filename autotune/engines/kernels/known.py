"""Sources of configurations for engines, their answers, and the choice of the best one."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol, TypeVar

from ...core.definition import AnyKernel, Device, baked_values, runtime_fields
from ...core.errors import UsageError, clipped, one_line
from ...core.problem import Problem
from ...recommend.duration import ExpectedTime
from ...records.as_recorded import config_of
from ...runtime.lookup import EXACT, NEAREST, TIERS, Choice, Predicting, choose
from ...runtime.tune_once import Contender
from ...runtime.wisdom import Entry, Fallback, Wisdom

NOTHING = "nothing is known of these baked fields"
LONGEST_REASON = 300  # characters
GOOD_LOSS = 0.05  # the nearest recorded size needs no tuning if it loses less
E = TypeVar("E", Entry, Fallback)


@dataclass(frozen=True)
class LookupAnswer:
    """The lookup's choice, and its origin.

    ``has_changed``: whether its source differs from the measured one.
    """

    choice: Choice
    where: str
    has_changed: bool = False

    @property
    def is_exact(self) -> bool:
        """Returns whether exactly this problem was tuned on this device, and its source is as it was."""
        return not self.has_changed and self.choice.tier == EXACT

    @property
    def is_good(self) -> bool:
        """Returns whether tuning cannot gain more than GOOD_LOSS."""
        choice, loss = self.choice, self.choice.expected_loss
        is_near = choice.tier == NEAREST and loss is not None and loss <= GOOD_LOSS
        return self.is_exact or (is_near and not self.has_changed)


class ConfigSource(Protocol):
    """A place that may know configurations: a package, or recorded sweeps."""

    name: str

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        """Returns the lookup's choice, or one line that says why there is none."""

    def contenders(self, kernel: AnyKernel, problem: Problem, device: Device, n: int) -> Sequence[Contender]:
        """Returns up to ``n`` configs to try on ``device``, the most promising first."""

    def expected_time(self, kernel: AnyKernel, problem: Problem, device: Device) -> ExpectedTime | None:
        """Returns the time of a launch with the best known config; None if it is not known."""

    def read_again(self) -> None:
        """Read the records again after new sweeps."""


def best(answers: Iterable[LookupAnswer]) -> LookupAnswer | None:
    """Returns the exact answer, or else the one with the least bound, or of the best tier if none has one.

    Answers whose source has changed come after all others.
    """
    return min(answers, key=_rank, default=None)


def _rank(answer: LookupAnswer) -> tuple[bool, bool, float, int]:
    choice = answer.choice
    bound = inf if choice.bound is None else choice.bound
    return answer.has_changed, choice.tier != EXACT, bound, TIERS.index(choice.tier)


def chosen(
    wisdom: Wisdom, kernel: AnyKernel, problem: Problem, device: Device, predicting: Predicting | None
) -> Choice | str:
    """Returns the lookup's choice among configs that the present definition allows, or one line that says why not.

    ``predicting``: predicts for problems without records; None does not.
    """
    baked = baked_values(problem)
    valid = replace(wisdom, entries=_in_space(wisdom.entries, kernel), fallbacks=_in_space(wisdom.fallbacks, kernel))
    if predicting is None and baked not in valid.baked_sets(kernel.name):
        return NOTHING
    sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
    try:
        return choose(valid, kernel, baked, sizes, device, predicting)
    except UsageError as error:
        return clipped(one_line(str(error)), LONGEST_REASON)


def _in_space(recorded: tuple[E, ...], kernel: AnyKernel) -> tuple[E, ...]:
    """Returns the entries of a kernel whose configs are in its present space, with these configs."""
    entries = []
    for one in recorded:
        with suppress(UsageError):
            if one.kernel == kernel.name:
                entries.append(replace(one, config=config_of(kernel, one.config)))
    return tuple(entries)
