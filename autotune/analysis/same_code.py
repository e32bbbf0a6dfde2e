"""Configs that are one: their machine code and their launches are the same."""

from collections.abc import Sequence

from ..core.units import counted
from ..records.trial import Trial


def unfelt_parameters(trials: Sequence[Trial]) -> list[str]:
    """Returns the parameters that change neither machine code nor launch: configs that differ in one alone are one."""
    names = dict.fromkeys(name for trial in trials if trial.same_as is not None for name in trial.config)
    return [name for name in names if _is_unfelt(name, trials)]


def _is_unfelt(name: str, trials: Sequence[Trial]) -> bool:
    roots: dict[frozenset[tuple[str, object]], list[int]] = {}
    for trial in trials:
        if trial.median_s is not None and name in trial.config:
            rest = frozenset((other, value) for other, value in trial.config.items() if other != name)
            roots.setdefault(rest, []).append(trial.number if trial.same_as is None else trial.same_as)
    return max(map(len, roots.values()), default=0) > 1 and all(len(set(each)) == 1 for each in roots.values())


def same_code_text(trials: Sequence[Trial]) -> str:
    """Returns a line for people on configs that were not measured, since another has their code and launch; or ""."""
    n = sum(trial.same_as is not None for trial in trials)
    if not n:
        return ""
    have = "has" if n == 1 else "have"
    names = unfelt_parameters(trials)
    by = f": {', '.join(names)} {'changes' if len(names) == 1 else 'change'} neither" if names else ""
    return f"{counted(n, 'config')} {have} the machine code and the launch of another, and its time{by}"
