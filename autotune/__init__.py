"""autotune: writes CUDA kernels in variants, proves them correct, measures them, and ships the fastest.

What is listed here is public. A definition needs the first group only.
"""

from pathlib import Path

__version__ = "0.1.0"

_root = Path(__file__).resolve().parent.parent
if (_root / "kernels" / "__init__.py").is_file() and (_root / "templates").is_dir():
    __path__.append(str(_root))  # a checkout: kernels/ and templates/ lie beside this package

from . import kernels  # type: ignore[attr-defined]  # noqa: E402
from .definition import (  # noqa: E402
    Array,
    Device,
    Kernel,
    Launch,
    TensorMap,
    Tolerance,
    Work,
    array_in,
    array_inout,
    array_out,
    baked,
    ceil_div,
    runtime,
)
from .errors import TrialFailure, UsageError  # noqa: E402
from .face import emit, run, sweep  # noqa: E402
from .record import load  # noqa: E402
from .samples import unpack_samples  # noqa: E402
from .space import Config, Space, when  # noqa: E402

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
    "array_in",
    "array_inout",
    "array_out",
    "baked",
    "ceil_div",
    "emit",
    "kernels",
    "load",
    "run",
    "runtime",
    "sweep",
    "unpack_samples",
    "when",
]
