"""autotune: writes CUDA kernels in variants, proves them correct, measures them, and ships the fastest.

What is listed here is public. A definition needs the first group only.
"""

from .system.quiet_start import end_quietly

end_quietly()

from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

_root = Path(__file__).resolve().parent.parent
if (_root / "kernels" / "__init__.py").is_file() and (_root / "templates").is_dir():
    __path__.append(str(_root))  # a checkout: kernels/ and templates/ lie beside this package

from . import kernels  # type: ignore[attr-defined]  # noqa: E402

# First the rooms, then the words: ``runtime``, ``sweep`` and ``emit`` are names of both, and a room that is imported
# for the first time takes its name.
for _room in ("runtime", "sweep", "emit"):
    import_module(f".{_room}", __name__)

from .api import emit, load, run, study, sweep  # noqa: E402
from .core import (  # noqa: E402
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Space,
    TensorMap,
    Tolerance,
    TrialFailure,
    UsageError,
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
    since,
    unpack_samples,
    when,
)
from .system.installation import VERSION  # noqa: E402

if TYPE_CHECKING:
    from .kernel_tuner import run_kernel, tune_kernel
    from .search.bayesian import ConfigSampler

__version__ = VERSION

__all__ = [
    "Array",
    "Config",
    "ConfigSampler",
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
    "emit",
    "kernels",
    "load",
    "run",
    "run_kernel",
    "runtime",
    "since",
    "study",
    "sweep",
    "tune_kernel",
    "unpack_samples",
    "when",
]


LATER = {"run_kernel": ".kernel_tuner", "tune_kernel": ".kernel_tuner", "ConfigSampler": ".search.bayesian"}


def __getattr__(name: str) -> Any:
    """Returns what only callers of it need to have imported: definitions import this package, too."""
    if name in LATER:
        return getattr(import_module(LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
