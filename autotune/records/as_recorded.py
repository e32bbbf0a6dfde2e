"""Checks a record's values against the fields and the space of a definition, since records are untrusted data.

A template only gets values of the definition's own space, or values of its fields' types.
"""

import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

from ..core.config import Config
from ..core.definition import Kernel, P, baked_fields, runtime_fields
from ..core.errors import TrialFailure, UsageError
from ..core.problem import added_fields
from .about import About
from .measurement import Protocol

WORD = re.compile(r"[\w.+\- ]*", re.ASCII)  # characters that a problem's text field may put into a source
TYPES = (int, float, bool, str)
T = typing.TypeVar("T")


def of_definition(kernel: Kernel[P], make: Callable[..., T], *arguments: object) -> T:
    """Returns ``make(*arguments)``, which passes values of a record to the definition.

    Raises:
        UsageError, TrialFailure: as ``make`` raises them; any other exception of a definition becomes a UsageError.
    """
    try:
        return make(*arguments)
    except (UsageError, TrialFailure):
        raise
    except Exception as error:
        raise UsageError(
            f"{kernel.source_path} raises {type(error).__name__}: {error} for recorded values; the record is damaged, "
            f"or {kernel.name} has changed since. Sweep again"
        ) from error


def config_of(kernel: Kernel[P], values: Mapping[str, Any]) -> Config:
    """Returns ``values`` of a record as a configuration of the kernel's space.

    Raises:
        UsageError: for values outside the space; True is not 1 here, since a template writes them differently.
    """
    config = kernel.space.parse(values)
    check_values(kernel, config)
    return config


def check_values(kernel: Kernel[P], config: Config) -> None:
    """Raises UsageError for a value that is not of the kernel's space."""
    for name, value in config.items():
        parameter = kernel.space.parameters.get(name)
        if parameter is None or not any(value == own and type(value) is type(own) for own in parameter.values):
            raise UsageError(f"{kernel.name}: {name}={value!r} of the record is not in the space")


def problem_of(kernel: Kernel[P], about: About) -> P:
    """Returns the problem of a record's sweep.json.

    Raises:
        UsageError: when its fields or their types differ from the definition's. It may lack fields that were added
            later.
    """
    kind = kernel.problem_type
    added = added_fields(kind)
    values = {**added, **about.problem}
    own = {"baked": (baked_fields(kind), about.baked), "runtime": (runtime_fields(kind), about.runtime)}
    for what, (names, recorded) in own.items():
        if set(names) - added.keys() != set(recorded) - added.keys():
            raise UsageError(
                f"{kernel.name} has the {what} fields {', '.join(names) or 'none'}, but its record has others"
            )
    if missing := [name for _, recorded in own.values() for name in recorded if name not in about.problem]:
        raise UsageError(f"{kernel.name}: the record lacks the problem's field {missing[0]}")
    types = typing.get_type_hints(kind)
    for name, value in values.items():
        wanted = types.get(name)
        fits = type(value) is wanted or (wanted is float and type(value) is int) or wanted not in TYPES
        if not fits or not isinstance(value, TYPES) or (isinstance(value, str) and not WORD.fullmatch(value)):
            called = getattr(wanted, "__name__", wanted)
            raise UsageError(f"{kernel.name}: {name}={value!r} of the record is not a plain value of the type {called}")
    return kernel.problem(values)


def protocol_of(about: About) -> Protocol:
    """Returns the measuring protocol in a record's sweep.json; raises UsageError if it is missing."""
    try:
        return Protocol(**about.settings["protocol"])
    except (KeyError, TypeError) as error:
        raise UsageError(f"sweep.json does not say how the trials of {about.kernel} were measured") from error
