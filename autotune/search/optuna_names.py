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
        UsageError: if there is no such class, or it cannot be imported.
    """
    module, _, last = name.removeprefix(PREFIX).rpartition(".")
    kind = _imported(name, module, last) if module else _sampler_class(name, last)
    return usable(name, kind)


def usable(name: str, kind: object) -> "type[BaseSampler]":
    """Returns ``kind``, the class called ``name``. Raises UsageError if it is not an Optuna sampler."""
    from optuna.samplers import BaseSampler

    if not (inspect.isclass(kind) and issubclass(kind, BaseSampler)):
        raise UsageError(
            f"the sampler {name!r} is not a class that extends optuna.samplers.BaseSampler; name one that does"
        )
    return kind


def arguments(kind: "type[BaseSampler]", seed: int) -> dict[str, object]:
    """Returns the arguments of a class: the seed and the options in QUIET, as far as the class accepts them."""
    taken = inspect.signature(kind).parameters
    return {name: value for name, value in {"seed": seed, **QUIET}.items() if name in taken}


def _sampler_class(name: str, last: str) -> Any:
    import optuna

    names = optuna.samplers.__all__
    if last not in names:
        raise UsageError(
            f"Optuna {optuna.__version__} has no sampler {last!r} for {name!r} (there are: {', '.join(names)}); "
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
