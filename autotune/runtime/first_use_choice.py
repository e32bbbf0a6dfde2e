"""The tier ``first use`` of the lookup: when it applies, and the choice that an outcome of tuning here makes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Protocol

from ..core.config import Config
from ..core.definition import Device, Kernel, baked_values, problem_name, runtime_fields
from ..core.errors import TrialFailure, UsageError, one_line
from ..core.problem import Problem, named_fields
from .lookup import FIRST_USE, Choice
from .tuned_here import TunedHere, forget_outcome, outcome_path
from .wisdom import Evidence, Wisdom

MAY_TUNE, ONLY_READ = "", "it is only asked for"


class TuningHere(Protocol):
    """Tunes problems at their first use, on the machine where they run."""

    def choice(self, kernel: Kernel[Problem], problem: Problem, device: Device, may_not: str) -> Choice | None:
        """Returns the choice of the tier ``first use``; None: the other tiers decide, and the log says why.

        ``may_not``: MAY_TUNE, or why nothing is tuned now; ONLY_READ is not logged.
        """


def is_recorded(wisdom: Wisdom, kernel: Kernel[Problem], problem: Problem, device: Device) -> bool:
    """Returns whether exactly this problem was tuned on a device of this name."""
    fields = asdict(problem)
    return any(
        (e.kernel, e.device.kind, e.device.name, e.device.arch) == (kernel.name, device.kind, device.name, device.arch)
        and {**fields, **e.baked, **e.runtime} == fields
        for e in wisdom.entries
    )


def choice_of(
    outcome: TunedHere, kernel: Kernel[Problem], problem: Problem, key_of: Callable[[Config], str]
) -> Choice | str:
    """Returns the choice of the fastest config of ``outcome``, or one line that says why there is none.

    ``key_of``: renders a config and returns the key of its source. An outcome of another source is removed.
    """
    fastest = outcome.fastest
    if fastest is None or fastest.median_s is None:
        return outcome.why
    try:
        is_same = key_of(kernel.space.parse(fastest.config)) == fastest.source_key
    except (UsageError, TrialFailure) as error:
        return one_line(str(error))
    if not is_same:
        forget_outcome(outcome_path(kernel.name, named_fields(problem), outcome.surroundings))
        return "the outcome that was kept belongs to another source; the next start tunes it again"
    around = outcome.surroundings
    evidence = Evidence(
        median_s=fastest.median_s,
        q1_s=fastest.q1_s,
        q3_s=fastest.q3_s,
        default_median_s=outcome.default_s,
        verified_on=outcome.checked,
        registers=fastest.registers,
        compiler=around.compiler,
        date=outcome.at,
    )
    return Choice(
        kernel=kernel.name,
        device=around.device.name,
        baked=baked_values(problem),
        runtime=_sizes_of(problem),
        config=fastest.config,
        tier=FIRST_USE,
        why=outcome.told(),
        source_key=fastest.source_key,
        evidence=evidence,
        tuned_on=f"{around.device.name}, {problem_name(problem)}, {outcome.at[:10]}",
        verified=True,
    )


def _sizes_of(problem: Problem) -> Mapping[str, object]:
    return {name: getattr(problem, name) for name in runtime_fields(type(problem))}
