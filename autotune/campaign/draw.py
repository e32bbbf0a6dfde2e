"""Draws problems by a seed from the ranges in a campaign's file, for records that cover a whole kernel.

[[ranges]]                      # drawn from in turn: here over everything, and as telescopes have it
taps = { from = 1, to = 2048 }  # an integer whose logarithm is uniform
sample_bits = [8, 10, 12]       # one of these
more = { from = 1, to = 67108864 }
n_samples = "taps + more"       # computed from names above it, which need not be fields

[work]                          # a launch does so much; others are drawn again
least_bytes = 4e6
most_bytes = 4e8
most_flops = 4e11
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Annotated, Any

from ..core.definition import AnyKernel
from ..core.errors import UsageError, one_line
from ..sweep.problem_list import evaluated
from ..system.limits import FROM_ZERO, SEED, check_type
from ..system.setting import Setting

MOST_ATTEMPTS = 10_000  # draws of one problem, nearly all of which may be impossible
LIMITS = {"least_bytes": 0.0, "most_bytes": inf, "most_flops": inf}


@dataclass(frozen=True)
class Draw:
    """The ranges of a draw, how many problems, and the seed. Problem k is the same whatever ``n`` is."""

    ranges: Annotated[
        tuple[Any, ...], Setting("Ranges to draw fields from.", words="a list of tables, [[ranges]]")
    ] = ()
    n: Annotated[int, Setting("How many problems to draw.", FROM_ZERO, "0", key="draw")] = 0
    seed: Annotated[int, Setting("Seed of the draw.", SEED, "0")] = 0
    work: Annotated[Mapping[str, float], Setting(f"Limits of a launch: {', '.join(LIMITS)}.")] = field(
        default_factory=dict
    )

    def problems(self, kernel: AnyKernel) -> Iterator[Any]:
        """Yields the problems.

        Raises:
            UsageError: if the ranges contain no possible problem, with the last reason.
        """
        if self.n and not self.ranges:
            raise UsageError("draw needs [[ranges]] of the problem's fields in the campaign's file")
        for number in range(self.n):
            rng, own = Random(f"{kernel.name} {self.seed} {number}"), self.ranges[number % len(self.ranges)]
            why = "no problem in [[ranges]] does work within [work]"
            for _ in range(MOST_ATTEMPTS):
                try:
                    problem = kernel.problem(_fields(own, kernel, rng))
                    work = kernel.work(problem)
                except UsageError as error:
                    why = one_line(str(error))
                    continue
                least, most, most_flops = ({**LIMITS, **self.work}[name] for name in LIMITS)
                if least <= work.bytes <= most and work.flops <= most_flops:
                    yield problem
                    break
            else:
                raise UsageError(f"no problem of {kernel.name} was found in {MOST_ATTEMPTS} draws; the last: {why}")


def check_draw(draw: Draw, kernel: AnyKernel) -> None:
    """Raises UsageError for a wrong range, or a name that is neither a field nor used; the message names the key."""
    fields = set(vars(kernel.tuned[0]))
    for number, own in enumerate(draw.ranges, 1):
        check_type(f"ranges[{number}]", own, dict, "a table")
        for name, value in own.items():
            _check(f"ranges[{number}].{name}", value)
            if name not in fields and not any(name in other for other in own.values() if isinstance(other, str)):
                raise UsageError(f"ranges[{number}].{name} is not a field of {kernel.name}'s problem, and not used")
    if unknown := draw.work.keys() - LIMITS.keys():
        raise UsageError(f"unknown key {min(unknown)} in [work]; its keys are {', '.join(LIMITS)}")
    for name, value in draw.work.items():
        check_type(f"work.{name}", value, (int, float), "a number")


def _check(where: str, value: object) -> None:
    if isinstance(value, dict):
        if value.keys() != {"from", "to"} or not all(type(n) is int for n in value.values()):
            raise UsageError(f"{where} must be {{ from = 1, to = 2048 }}, a list of values or an expression")
        if not 1 <= value["from"] <= value["to"]:
            raise UsageError(
                f"{where} goes from {value['from']} to {value['to']}: from must be 1 or more, and not above to"
            )
    elif not isinstance(value, list | str) or not value:
        raise UsageError(f"{where} must be a list of values, {{ from = 1, to = 2048 }} or an expression")


def _fields(ranges: Mapping[str, Any], kernel: AnyKernel, rng: Random) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    for name, value in ranges.items():
        if isinstance(value, dict):
            least, most = value["from"], value["to"]
            drawn[name] = min(most, int(least * ((most + 1) / least) ** rng.random()))
        else:
            drawn[name] = rng.choice(value) if isinstance(value, list) else evaluated(value, drawn)
    fields = vars(kernel.tuned[0])
    return {name: value for name, value in drawn.items() if name in fields}
