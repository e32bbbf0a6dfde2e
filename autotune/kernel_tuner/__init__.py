"""The functions of Kernel Tuner that scripts use, so that one import changes: ``from autotune.kernel_tuner import ..``.

Names and meanings of arguments are those of Kernel Tuner's documentation (B. van Werkhoven, Kernel Tuner: A search-
optimizing GPU code auto-tuner, Future Generation Computer Systems 90, 2019). The room imports ``porting`` and the rooms
below it.
"""

from .facade import run_kernel, tune_kernel
from .returned import Results, get_config_string

__all__ = ["Results", "get_config_string", "run_kernel", "tune_kernel"]
