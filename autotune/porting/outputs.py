"""What becomes of a kernel's arrays in a definition."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..core.definition import Tolerance


@dataclass(frozen=True)
class Outputs:
    """What becomes of the arrays: ``kinds`` are in, out, inout and scratch; the answers of out and inout."""

    kinds: Mapping[str, str]
    answers: Mapping[str, np.ndarray]
    tolerance: Tolerance
    note: str = ""  # what could not be checked
    judged: str = ""  # digest of what judges instead of answers: another judge makes another record
