"""The vocabulary of definitions, and the parts that every other room uses: errors, spaces, problems, files.

It imports no other room. Packages that ``autotune emit`` writes contain an unchanged copy of this folder.
"""

from .config import Config
from .definition import (
    Array,
    Device,
    Kernel,
    Launch,
    TensorMap,
    Tolerance,
    Work,
    array_constant,
    array_in,
    array_inout,
    array_out,
    array_scratch,
    array_workspace,
    baked,
    ceil_div,
    runtime,
)
from .errors import TrialFailure, UsageError
from .packed_samples import unpack_samples
from .space import Space, since, when

__all__ = [
    "Array",
    "Config",
    "Device",
    "Kernel",
    "Launch",
    "Space",
    "TensorMap",
    "Tolerance",
    "TrialFailure",
    "UsageError",
    "Work",
    "array_constant",
    "array_in",
    "array_inout",
    "array_out",
    "array_scratch",
    "array_workspace",
    "baked",
    "ceil_div",
    "runtime",
    "since",
    "unpack_samples",
    "when",
]
