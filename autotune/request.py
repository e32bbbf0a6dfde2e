"""From what a user names (kernel, problem, device) to what the stations take. Everything wrong is a UsageError."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from .catalogue import load_kernel
from .definition import Kernel
from .devices import Target, find_device
from .errors import UsageError
from .space import Config, Value


def parse_values(text: str) -> dict[str, Value]:
    """``taps=256,ALGORITHM=register`` -> {"taps": 256, "ALGORITHM": "register"}.

    Raises:
        UsageError: for anything that is not name=value.
    """
    values: dict[str, Value] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not name or not value:
            raise UsageError(f"{part!r} in {text!r} is not name=value; write taps=256,decimation=16")
        if name in values and values[name] != parse_value(value):
            raise UsageError(f"{name} is given twice in {text!r}")
        values[name] = parse_value(value)
    return values


def parse_value(text: str) -> Value:
    """An int, a float, a bool or a string, whichever it reads as."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def problem_on(kernel: Kernel[Any], values: Mapping[str, Any], target: Target, base: Any = None) -> Any:
    """``base`` (the default problem) with ``values``; without a GPU, runtime fields not given are host_sizes.

    Raises:
        UsageError: for unknown fields, values of another type, or a problem that cannot be.
    """
    types = {f.name: f.type for f in fields(kernel.problem_type)}
    for name, value in values.items():
        expected = types.get(name)
        if expected in (int, "int") and (isinstance(value, bool) or not isinstance(value, int)):
            raise UsageError(f"{kernel.name}: {name}={value} must be an integer")
    small = {} if target.kind == "cuda" else kernel.host_sizes
    return kernel.problem({**small, **values}, base=base)


def problems_on(kernel: Kernel[Any], texts: Iterable[str], target: Target) -> list[Any]:
    """One problem for each text; the default problem when there is none."""
    given = [parse_values(text) for text in texts] or [{}]
    return [problem_on(kernel, values, target) for values in given]


def parse_config(kernel: Kernel[Any], text: str, problem: Any, target: Target) -> Config:
    """A whole config, allowed for ``problem`` on the device.

    Raises:
        UsageError: for one that is not complete, not in the space, or that a constraint refuses.
    """
    config = kernel.space.parse(parse_values(text))
    if (constraint := kernel.space.broken(problem, config, target.device)) is not None:
        raise UsageError(f"{kernel.name} refuses {config}: it must hold that {constraint.reason} ({constraint.name})")
    return config


def parse_restriction(kernel: Kernel[Any], texts: Iterable[str]) -> dict[str, tuple[Value, ...]]:
    """``ALGORITHM=register`` and ``WGS=64`` and ``WGS=128`` -> the values to which a sweep keeps."""
    restriction: dict[str, tuple[Value, ...]] = {}
    for text in texts:
        for name, value in parse_values(text).items():
            kernel.space.check_values(name, (value,))
            restriction[name] = (*restriction.get(name, ()), value)
    return restriction


def resolve(kernel: str, device: str) -> tuple[Kernel[Any], Target]:
    """Both by name."""
    return load_kernel(kernel), find_device(device)
