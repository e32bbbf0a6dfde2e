"""The problem of a kernel, which is any frozen dataclass; its fields by kind, and as text."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, fields, replace
from math import log
from typing import Any, ClassVar, Protocol, TypeVar

from .errors import UsageError


class Problem(Protocol):
    """A frozen dataclass, which each kernel defines for itself: ``class Detect(Kernel[DetectProblem])``."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __hash__(self) -> int: ...


P = TypeVar("P", bound=Problem)


def runtime_fields(problem_type: Any) -> tuple[str, ...]:
    """Returns the names of the fields that are arguments of the kernel."""
    return tuple(f.name for f in fields(problem_type) if f.metadata.get("runtime"))


def size_fields(problem: Problem) -> tuple[str, ...]:
    """Returns the names of the runtime fields that are integers."""
    return tuple(name for name in runtime_fields(type(problem)) if type(getattr(problem, name)) is int)


def baked_fields(problem_type: Any) -> tuple[str, ...]:
    """Returns the names of the fields that are constants of the source."""
    return tuple(f.name for f in fields(problem_type) if not f.metadata.get("runtime"))


def added_fields(problem_type: Any) -> dict[str, Any]:
    """Returns the fields that were added after sweeps were recorded, with the value that older records imply."""
    return {f.name: f.default for f in fields(problem_type) if f.metadata.get("added")}


def named_fields(problem: Problem) -> dict[str, Any]:
    """Returns the fields that identify ``problem``, by name, in the order of declaration. An added field is left out
    where it has the value that older records imply, so the names of older problems stay the same.
    """
    added = added_fields(type(problem))
    values = {f.name: getattr(problem, f.name) for f in fields(problem)}
    return {name: value for name, value in values.items() if name not in added or value != added[name]}


REFUSALS = (TypeError, ValueError, ArithmeticError, UsageError)  # a problem's class refuses values by these


def baked_values(problem: Problem) -> dict[str, object]:
    """Returns the baked fields among ``named_fields``."""
    runtime = runtime_fields(type(problem))
    return {name: value for name, value in named_fields(problem).items() if name not in runtime}


def problem_name(problem: Problem) -> str:
    """Returns ``named_fields`` as ``taps=256,decimation=16,...``."""
    return ",".join(f"{name}={value}" for name, value in named_fields(problem).items())


def replaced(problem: P, values: Mapping[str, object]) -> P | None:
    """Returns the problem with these values, or None if its class refuses them."""
    try:
        return replace(problem, **values)
    except REFUSALS:
        return None


def replacements(problem: P, name: str, values: Iterable[object]) -> Iterator[P | None]:
    """Yields ``replaced`` for each value of a field. Its class may refuse thousands, so the others are read once."""
    kind, given = type(problem), {each.name: getattr(problem, each.name) for each in fields(problem) if each.init}
    for value in values:
        given[name] = value
        try:
            yield kind(**given)
        except REFUSALS:
            yield None


def distance(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Returns the sum of |log ratio| over the sizes that both have; a size of 0 counts as 1."""
    return sum(abs(log(max(1, a[name]) / max(1, b[name]))) for name in b if name in a)
