"""The type of a kernel's problem, a frozen dataclass, whatever its fields are; and its fields by kind and as text."""

from dataclasses import Field, fields
from typing import Any, ClassVar, Protocol


class Problem(Protocol):
    """A frozen dataclass, which each kernel defines for itself: ``class Detect(Kernel[DetectProblem])``."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __hash__(self) -> int: ...


def runtime_fields(problem_type: Any) -> tuple[str, ...]:
    """Returns the names of the fields that are arguments of the kernel."""
    return tuple(f.name for f in fields(problem_type) if f.metadata.get("runtime"))


def size_fields(problem: Problem) -> tuple[str, ...]:
    """Returns the names of the runtime fields that are integers."""
    return tuple(name for name in runtime_fields(type(problem)) if type(getattr(problem, name)) is int)


def baked_fields(problem_type: Any) -> tuple[str, ...]:
    """Returns the names of the fields that are constants of the source."""
    return tuple(f.name for f in fields(problem_type) if not f.metadata.get("runtime"))


def baked_values(problem: Problem) -> dict[str, Any]:
    """Returns the baked fields of ``problem`` by name."""
    return {name: getattr(problem, name) for name in baked_fields(type(problem))}


def problem_name(problem: Problem) -> str:
    """Returns every field in the order of declaration, as ``taps=256,decimation=16,...``."""
    return ",".join(f"{f.name}={getattr(problem, f.name)}" for f in fields(problem))
