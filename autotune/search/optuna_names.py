"""Finds an Optuna sampler class by its name: ``optuna:NSGAIISampler``, or ``optuna:package.module.Class``."""

import inspect
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError, error_text

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

PREFIX = "optuna:"
# These options silence warnings about things that are usual here: categorical parameters, and proposals ahead.
QUIET = {"warn_independent_sampling": False, "warn_asynchronous_seeding": False}


def names_module(name: str) -> bool:
    """Returns whether ``name`` names a module to import; a person may give such a name, a file may not."""
    return name.startswith(PREFIX) and "." in name


@lru_cache(maxsize=32)
def sampler_class(name: str) -> "type[BaseSampler]":
    """Returns the class with this name; the part after the prefix has dots if the class is not from Optuna itself.

    Raises:
        UsageError: if there is no such class, it cannot be imported, or it needs more than a seed.
    """
    module, _, last = name.removeprefix(PREFIX).rpartition(".")
    kind = _imported(name, module, last) if module else _sampler_class(name, last)
    return usable(name, kind)


def usable(name: str, kind: object) -> "type[BaseSampler]":
    """Returns ``kind``, the class called ``name``, after checks.

    Raises:
        UsageError: if it is not an Optuna sampler, or needs more than a seed.
    """
    from optuna.samplers import BaseSampler

    if not (inspect.isclass(kind) and issubclass(kind, BaseSampler)):
        raise UsageError(
            f"the sampler {name!r} is not a class that extends optuna.samplers.BaseSampler; name one that does"
        )
    if inspect.isabstract(kind):
        raise UsageError(f"the sampler {name!r} is abstract: it lacks {', '.join(sorted(kind.__abstractmethods__))}")
    if needed := _required_arguments(kind):
        raise UsageError(
            f"the sampler {name!r} needs {', '.join(needed)}, and autotune gives it only a seed; "
            f"write a class that extends it and name that, {PREFIX}package.module.Class"
        )
    return kind


def arguments(kind: "type[BaseSampler]", seed: int) -> dict[str, object]:
    """Returns the arguments of a class: the seed and the options in QUIET, as far as the class accepts them."""
    taken = inspect.signature(kind).parameters
    return {name: value for name, value in {"seed": seed, **QUIET}.items() if name in taken}


def _sampler_class(name: str, last: str) -> Any:
    import optuna

    if last not in optuna.samplers.__all__:
        raise UsageError(
            f"Optuna {optuna.__version__} has no sampler {last!r} for {name!r} (there are: {', '.join(_usable())}); "
            f"name a sampler of another package as {PREFIX}package.module.Class"
        )
    return getattr(optuna.samplers, last)


def _imported(name: str, module: str, last: str) -> Any:
    if not all(part.isidentifier() for part in (*module.split("."), last)):
        raise UsageError(f"the sampler {name!r} is not a name such as {PREFIX}package.module.Class")
    try:
        imported = import_module(module)
    except Exception as error:  # a module of another package may raise anything
        raise UsageError(
            f"the sampler {name!r}: {module} cannot be imported: {error_text(error)}; correct or install it"
        ) from error
    if not hasattr(imported, last):
        raise UsageError(f"the sampler {name!r}: {module} has no {last}; correct the name")
    return getattr(imported, last)


def _usable() -> list[str]:
    """Returns the names of Optuna's sampler classes that need no more than a seed."""
    import optuna

    classes = {name: getattr(optuna.samplers, name) for name in optuna.samplers.__all__}
    return sorted(
        name
        for name, kind in classes.items()
        if inspect.isclass(kind) and not (inspect.isabstract(kind) or _required_arguments(kind))
    )


def _required_arguments(kind: type) -> list[str]:
    """Returns the arguments that a class needs besides a seed."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in variadic and name != "seed"
    ]
