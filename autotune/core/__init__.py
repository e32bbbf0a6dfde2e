"""The words that definitions are written in, and what every other room needs: errors, spaces, problems, files.

It imports nothing of autotune. Packages that ``autotune emit`` writes bring this folder along as it is.
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
