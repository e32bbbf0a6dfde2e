"""What becomes of a kernel's arrays in a definition."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .answers import Answer


@dataclass(frozen=True)
class Outputs:
    """What becomes of the arrays: ``kinds`` are in, out, inout and scratch.

    ``compared``: answers that the definition's reference has. ``judged``: digest of what judges besides, or instead:
    another judge makes another record.
    """

    kinds: Mapping[str, str]
    compared: Mapping[str, Answer] = field(default_factory=dict)
    note: str = ""  # what could not be checked
    judged: str = ""
