"""The type of a kernel's problem: a frozen dataclass, whatever its fields are."""

from dataclasses import Field
from typing import Any, ClassVar, Protocol


class Problem(Protocol):
    """A frozen dataclass, which each kernel defines for itself: ``class Detect(Kernel[DetectProblem])``."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __hash__(self) -> int: ...
