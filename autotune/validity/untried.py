"""A sweep could not try the values that its kernel's space has had only since then; this names them."""

from collections.abc import Iterable, Mapping, Sequence

from ..core.config import Config, Value
from ..core.definition import AnyKernel
from ..core.errors import TrialFailure, UsageError
from ..records.about import About
from ..records.as_recorded import of_definition, problem_of

NewValues = tuple[Value, ...]


def untried(kernel: AnyKernel, about: About, configs: Iterable[Config] | None = None) -> dict[str, NewValues]:
    """Returns the values, by parameter, that allowed configs of the recorded problem have today, and that the space did
    not have when the sweep ran. Parameters that exist only with one of these are left out.

    None are known of a record that does not say its space, or is of another definition.

    ``configs``: the allowed ones, if they are known; by default those that the sweep would try today.
    """
    new: dict[str, NewValues] = {}
    for name, parameter in kernel.space.parameters.items() if about.space else ():
        had: Sequence[Value] = about.space.get(name, () if parameter.since is None else (parameter.since,))
        if had:  # else it exists only with a value that is newer
            new[name] = tuple(value for value in parameter.values if value not in had)
    if not any(new.values()):
        return {}
    if configs is None:
        try:
            configs = of_definition(kernel, _configs, kernel, about)
        except (UsageError, TrialFailure):
            return {}
    there = {name: {config.get(name) for config in configs} for name in new}
    found = {name: tuple(value for value in values if value in there[name]) for name, values in new.items()}
    return {name: values for name, values in found.items() if values}


def _configs(kernel: AnyKernel, about: About) -> tuple[Config, ...]:
    restrict = {name: tuple(values) for name, values in (about.settings.get("restrict") or {}).items()}
    return kernel.space.enumerate(problem_of(kernel, about), about.device, restrict).configs


def value_names(values: Mapping[str, NewValues]) -> list[str]:
    """Returns each value with its parameter, as on a command line."""
    return [f"{name}={value}" for name, each in values.items() for value in each]
