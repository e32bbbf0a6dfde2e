"""The roles of a kernel's arrays in a definition."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .answers import Answer


@dataclass(frozen=True)
class Outputs:
    """The roles of arrays in a definition. ``kinds``: in, out, inout or scratch, by array.

    ``compared``: answers that the definition's reference returns. ``judged``: digest of the judge, if there is one;
    another judge makes another record.
    """

    kinds: Mapping[str, str]
    compared: Mapping[str, Answer] = field(default_factory=dict)
    note: str = ""  # names the missing checks
    judged: str = ""
    is_sure: bool = True  # a config ran, and gave the answers
