"""A sweep could not try the values that its kernel's space has had only since then; this names them."""

from collections.abc import Mapping, Sequence

from ..core.config import Value
from ..core.definition import AnyKernel
from ..core.units import counted
from ..records.about import About
from ..records.as_recorded import problem_of

NewValues = tuple[Value, ...]


def untried(kernel: AnyKernel, about: About) -> dict[str, NewValues]:
    """Returns the values, by parameter, that allowed configs of the recorded problem have today, and that the space did
    not have when the sweep ran. Parameters that exist only with one of these are left out.

    Raises UsageError if the record is of another definition.
    """
    new: dict[str, NewValues] = {}
    for name, parameter in kernel.space.parameters.items():
        had: Sequence[Value] = about.space.get(name, () if parameter.since is None else (parameter.since,))
        if had:  # without a record of the space nothing is known
            new[name] = tuple(value for value in parameter.values if value not in had)
    if not any(new.values()):
        return {}
    restrict = {name: tuple(values) for name, values in (about.settings.get("restrict") or {}).items()}
    configs = kernel.space.enumerate(problem_of(kernel, about), about.device, restrict).configs
    there = {name: {config.get(name) for config in configs} for name in new}
    found = {name: tuple(value for value in values if value in there[name]) for name, values in new.items()}
    return {name: values for name, values in found.items() if values}


def untried_text(values: Mapping[str, NewValues], n_trials: int) -> str:
    """Returns what to do about values that a sweep of ``n_trials`` could not try; "" without any."""
    if not values:
        return ""
    named = ", ".join(f"{name}={value}" for name, each in values.items() for value in each)
    return f"not tried, since they are newer: {named}. Sweep it again, with more than its {counted(n_trials, 'trial')}"
