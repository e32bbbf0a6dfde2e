"""What may know configurations for engines, what it answers, and which answer is the best."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from ...core.definition import AnyKernel, Device, baked_values, runtime_fields
from ...core.errors import UsageError, clipped, one_line
from ...core.problem import Problem
from ...records.as_recorded import config_of
from ...runtime.lookup import EXACT, NEAREST, TIERS, Choice, Predicting, choose
from ...runtime.wisdom import Entry, Fallback, Wisdom
from ...transfer.duration import ExpectedTime

NOTHING = "nothing is known of these baked fields"
LONGEST_REASON = 300  # characters
GOOD_LOSS = 0.05  # the expected loss up to which the nearest recorded size is good enough not to tune
E = TypeVar("E", Entry, Fallback)


@dataclass(frozen=True)
class LookupAnswer:
    """The lookup's choice and where it was looked up.

    ``has_changed``: its source is not what was measured.
    """

    choice: Choice
    where: str
    has_changed: bool = False

    @property
    def is_good(self) -> bool:
        """Returns whether tuning promises no more than GOOD_LOSS."""
        choice, loss = self.choice, self.choice.expected_loss
        if self.has_changed or loss is None:
            return False
        return choice.tier == EXACT or (choice.tier == NEAREST and loss <= GOOD_LOSS)


class ConfigSource(Protocol):
    """A place that may know configurations: a package, or recorded sweeps."""

    name: str

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        """Returns the lookup's choice; or why there is none, in one line."""

    def expected_time(self, kernel: AnyKernel, problem: Problem, device: Device) -> ExpectedTime | None:
        """Returns how long a launch of the best config known takes; None where nothing says it."""

    def read_again(self) -> None:
        """Look anew at what may have changed, since sweeps were recorded."""


def best(answers: Iterable[LookupAnswer]) -> LookupAnswer | None:
    """Returns the answer of the best tier, the first of several; what has changed since comes after what has not."""
    return min(answers, key=lambda a: (a.has_changed, TIERS.index(a.choice.tier)), default=None)


def chosen(
    wisdom: Wisdom, kernel: AnyKernel, problem: Problem, device: Device, predicting: Predicting | None
) -> Choice | str:
    """Looks up among the configurations that today's definition allows; returns why there is none, in one line.

    ``predicting``: answers for what was not recorded; None: nothing does.
    """
    baked = baked_values(problem)
    known = replace(wisdom, entries=_in_space(wisdom.entries, kernel), fallbacks=_in_space(wisdom.fallbacks, kernel))
    if predicting is None and baked not in known.baked_sets(kernel.name):
        return NOTHING
    sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
    try:
        return choose(known, kernel, baked, sizes, device, predicting)
    except UsageError as error:
        return clipped(one_line(str(error)), LONGEST_REASON)


def _in_space(known: tuple[E, ...], kernel: AnyKernel) -> tuple[E, ...]:
    """Returns those of a kernel whose configs are in its present space, as configs of it."""
    found = []
    for one in known:
        with suppress(UsageError):
            if one.kernel == kernel.name:
                found.append(replace(one, config=config_of(kernel, one.config)))
    return tuple(found)
