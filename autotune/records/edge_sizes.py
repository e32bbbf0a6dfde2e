"""The sizes at which configs are verified: by numbered rules, so that a record states a number and a seed for them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..core.config import Config
from ..core.definition import AnyKernel, problem_name
from ..core.errors import TrialFailure, UsageError
from ..core.parameter import completed_config
from ..source.registry import recorded_kernel
from .about import About
from .as_recorded import check_values, of_definition, problem_of
from .checks_made import EDGE_SIZES, TIMED_SIZE
from .trial import Trial

EdgeSizes = tuple[Any, ...]  # problems


def _of_definition(kernel: AnyKernel, problem: Any, config: Config, seed: int) -> EdgeSizes:
    return tuple(kernel.edge_problems(problem, config))


def _with_drawn(kernel: AnyKernel, problem: Any, config: Config, seed: int) -> EdgeSizes:
    fixed = tuple(kernel.edge_problems(problem, config))
    return (*fixed, *kernel.drawn_problems(problem, config, seed)) if fixed else ()


RULES: Mapping[int, Callable[[AnyKernel, Any, Config, int], EdgeSizes]] = {  # none is ever changed
    0: _of_definition,  # these trials do not say which checks they passed
    1: _of_definition,
    2: _with_drawn,
}
RULE = max(RULES)  # the rule of new trials


def verified_on(
    about: About, trial: Trial, trials: Iterable[Trial], kernel: AnyKernel | None = None
) -> tuple[str, ...]:
    """Returns the names of the problems at which a trial was verified; the last is the timed one.

    ``trials``: those of its sweep. ``kernel``: the definition; by default the installed one. () if the trial was not
    verified, or its definition is not there or refuses the config today.
    """
    if trial.rule and TIMED_SIZE not in trial.checks:
        return ()
    if trial.verified_on or trial.rule is None:
        return trial.verified_on
    try:
        kernel = kernel or recorded_kernel(about.content, {})
        return of_definition(kernel, _size_names, kernel, about, trial, trials)
    except (UsageError, TrialFailure):
        return ()


def _size_names(kernel: AnyKernel, about: About, trial: Trial, trials: Iterable[Trial]) -> tuple[str, ...]:
    """Returns the names of a trial's sizes by its rule; the definition may raise anything."""
    assert trial.rule is not None
    problem = problem_of(kernel, about)
    config = completed_config(trial.config, kernel.space.added)
    check_values(kernel, config)  # the space may have had other parameters then
    is_edged = not trial.rule or EDGE_SIZES in trial.checks
    edges = RULES[trial.rule](kernel, problem, config, trial.seed or 0) if is_edged else ()
    stand_in = next((each for each in trials if each.number == trial.stand_in), None)
    reference = reference_text(None if stand_in is None else stand_in.config, trial.numpy_parts)
    timed = problem_name(problem) + reference
    return (*(name for name in dict.fromkeys(map(problem_name, edges)) if name != timed), timed)


def reference_text(stand_in: Config | None, numpy_parts: str) -> str:
    """Returns how the timed size was checked; "" if NumPy computed all outputs."""
    if stand_in is None:
        return ""
    return f" (against {stand_in}; NumPy answers {numpy_parts})" if numpy_parts else f" (against {stand_in})"
