"""Turns a user's words into a kernel, a problem, a config and a device; every mistake is a UsageError."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from math import isfinite
from numbers import Integral, Real
from typing import Any

from ..core.config import Config, Value, config_value_text, listed_parts, parse_value, reads_back, unquoted
from ..core.definition import AnyKernel, Kernel, P, problem_name
from ..core.errors import UsageError
from ..core.parameter import UNJUDGED, clause
from ..core.problem import size_fields
from ..core.space import Space
from ..devices import Target, find_device
from ..rendering.template_checks import too_large
from ..source.registry import load_kernel
from ..system.limits import check_type


def parse_values(text: str, read: Callable[[str, str], Value] | None = None) -> dict[str, Value]:
    """Parses ``taps=256,ALGORITHM=register`` into {"taps": 256, "ALGORITHM": "register"}.

    ``read``: returns the value for a name and a text; by default the text alone decides.

    Raises:
        UsageError: for a part that is not name=value, or a name with two values.
    """
    check_type("values", text, str, "text such as taps=256,decimation=16")
    values: dict[str, Value] = {}
    for part in listed_parts(text):
        name, equals, value = (p.strip() for p in part.partition("="))
        if not equals or not name or not value:
            raise UsageError(f"{part!r} in {text!r} is not name=value; write taps=256,decimation=16")
        meant = read(name, value) if read else parse_value(value)
        if name in values and values[name] != meant:
            raise UsageError(f"{name} is given twice in {text!r}")
        values[name] = meant
    return values


def problem_on(kernel: Kernel[P], values: Mapping[str, object], target: Target, base: P | None = None) -> P:
    """Returns ``base`` (or the default problem) with ``values``; on the host, other runtime fields are host_sizes.

    Other fields keep their defaults; where those contradict ``values``, they follow from them (``Kernel.asked``).

    Raises:
        UsageError: for a GPU that is too old, unknown fields, values of another type, an impossible problem, an empty
            array, or default sizes that are too large for the host.
    """
    kernel.check_arch(target.device)
    is_small = not target.module.defaults.has_full_sizes
    small = kernel.host_sizes if is_small else {}
    # the sizes of tuned problems are too large for the host
    known = () if is_small else None
    problem = kernel.problem_with(
        of_types(kernel, values), base=base, usual=small, known=known, refused=lambda at: _empty(kernel, at)
    )
    if is_small and not {*small, *values} & set(size_fields(problem)):
        _check_host_size(kernel, problem, target)
    if (why_not := too_large(kernel.name, kernel.arrays(problem))) is not None:
        raise UsageError(why_not)
    return problem


def of_types(kernel: Kernel[P], values: Mapping[str, object]) -> dict[str, object]:
    """Returns ``values`` converted to their fields' types; names that are not fields stay unchanged.

    Raises:
        UsageError: for a value of another type, a number that is not finite, or text that cannot be written.
    """
    types = _types(kernel)
    return {name: _of_type(kernel, name, types.get(str(name)), value) for name, value in values.items()}


def problems_on(kernel: Kernel[P], texts: Iterable[str], target: Target) -> list[P]:
    """Returns one problem for each text, or the default problem if there is none."""
    types = _types(kernel)

    def read(name: str, text: str) -> Value:
        return text if types.get(name) is str else parse_value(text)

    given = [parse_values(text, read) for text in texts] or [{}]
    return [problem_on(kernel, values, target) for values in given]


def parse_config(kernel: Kernel[P], text: str, problem: P, target: Target) -> Config:
    """Parses a complete config that is allowed for ``problem`` on the device.

    Raises:
        UsageError: for a config that is incomplete, not in the space, or refused by a constraint.
    """
    config = kernel.space.parse(parse_values(text, _reader(kernel.space)))
    if (constraint := kernel.space.broken(problem, config, target.device)) is not None:
        named = "" if constraint.reason.startswith(UNJUDGED) else f" ({constraint.name})"
        why = f"which {clause(constraint.reason)}{named}"
        raise UsageError(f"{kernel.name} excludes {config}, {why}. {_allowed_nearby(kernel, config, problem, target)}")
    return config


def _allowed_nearby(kernel: Kernel[P], config: Config, problem: P, target: Target) -> str:
    """Returns how to change a refused ``config``: one value if that is enough, else the nearest allowed config."""
    if changes := kernel.space.changes(problem, config, target.device):
        options = [f"{name}={' or '.join(map(str, values))}" for name, values in changes.items()]
        return f"Allowed instead: {'; or '.join(options)}"
    enumeration = kernel.space.enumerate(problem, target.device)
    return (
        f"The nearest allowed config: {enumeration.nearest(config)}"
        if enumeration.configs
        else "No config is allowed here"
    )


def parse_restriction(
    kernel: Kernel[P], only: Iterable[str] | Mapping[str, tuple[Value, ...]]
) -> dict[str, tuple[Value, ...]]:
    """Returns the values that a sweep is restricted to: as given, or those in ``WGS=64``, ``WGS=128``, ``UNROLL=4``.

    Raises:
        UsageError: for values that are not in a tuple, or not in the space.
    """
    if isinstance(only, Mapping):
        for name, values in only.items():
            check_type(f"only[{name!r}]", values, tuple, "a tuple of values")
        return dict(only)
    restriction: dict[str, tuple[Value, ...]] = {}
    for text in only:
        for name, value in parse_values(text, _reader(kernel.space)).items():
            kernel.space.check_values(name, (value,))
            restriction[name] = (*restriction.get(name, ()), value)
    return restriction


def resolve(kernel: str, device: str) -> tuple[AnyKernel, Target]:
    """Returns the kernel and the device with these names."""
    return load_kernel(kernel), find_device(device)


# ---------------------------------------------------------------------- values, by where they belong
def _reader(space: Space) -> Callable[[str, str], Value]:
    """Returns a parser that compares texts with the values of ``space``, so ``1e5`` or ``true`` may be strings."""

    def read(name: str, text: str) -> Value:
        values = space.parameters[name].values if name in space.parameters else ()
        return next((value for value in values if config_value_text(value) == text), parse_value(unquoted(text)))

    return read


def _types(kernel: Kernel[P]) -> dict[str, object]:
    """Returns the types of the problem's fields; an annotation may be a string, such as "int"."""
    plain = {"int": int, "float": float, "bool": bool, "str": str}
    return {f.name: plain.get(f.type) if isinstance(f.type, str) else f.type for f in fields(kernel.problem_type)}


def _of_type(kernel: Kernel[P], name: str, wanted: object, value: Any) -> Any:
    """Converts ``value`` to the type ``wanted``.

    Raises:
        UsageError: for a value of another type.
    """
    is_bool = isinstance(value, bool)
    if wanted is int and (is_bool or not isinstance(value, Integral)):
        raise UsageError(f"{kernel.name}: {name}={value} must be an integer")
    if wanted is float and (is_bool or not isinstance(value, Real) or not isfinite(value)):
        raise UsageError(f"{kernel.name}: {name}={value} must be a finite number")
    if wanted is bool and not is_bool:
        raise UsageError(f"{kernel.name}: {name}={value} must be true or false")
    if wanted is str:
        _check_text(kernel, name, value)
    return wanted(value) if wanted in (int, float) else value


def _check_text(kernel: Kernel[P], name: str, value: object) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{kernel.name}: {name}={value} must be text")
    if not reads_back(value):
        raise UsageError(
            f"{kernel.name}: {name}={value!r} cannot be written as a problem; it must be printable text without "
            "commas, equals signs or surrounding white space"
        )


def _check_host_size(kernel: Kernel[P], problem: P, target: Target) -> None:
    most = target.module.defaults.most_bytes
    n_bytes, names = sum(array.n_bytes for array in kernel.arrays(problem).values()), size_fields(problem)
    if names and most is not None and n_bytes > most:
        sizes = ", ".join(f'"{name}": ...' for name in names)
        raise UsageError(
            f"{kernel.name}: the arrays of {problem_name(problem)} take {n_bytes / 1e6:.0f} MB, too much for the "
            f"device {target.identifier}, where a CPU runs each thread; set host_sizes = {{{sizes}}} in "
            f"{kernel.source_path.name}, or give --problem {','.join(f'{name}=...' for name in names)}"
        )


def _empty(kernel: Kernel[P], problem: P) -> str | None:
    """Returns a message that names an empty array of ``problem`` and the cause, or None."""
    for name, array in kernel.arrays(problem).items():
        if any(extent < 1 for extent in array.shape):
            return (
                f"{kernel.name}: {_too_small(problem)} makes the array {name} {list(array.shape)}; "
                "each of its extents must be at least 1"
            )
    return None


def _too_small(problem: object) -> str:
    """Returns the fields that are not positive, which cause an empty array, or all numbers if all are positive."""
    numbers = {name: v for name, v in vars(problem).items() if isinstance(v, int) and not isinstance(v, bool)}
    small = {name: v for name, v in numbers.items() if v < 1} or numbers
    return ", ".join(f"{name}={v}" for name, v in small.items())
