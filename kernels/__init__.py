"""One definition per operation: ``autotune.kernels()`` gives them by name, with those of other packages."""

import sys
from types import ModuleType
from typing import Any


class _Kernels(ModuleType):
    """The package is callable, so that ``autotune.kernels()`` and ``autotune.kernels.ddc`` are both what they say."""

    def __call__(self) -> dict[str, Any]:
        """Name -> definition of every kernel."""
        from autotune.source.registry import all_kernels

        return all_kernels()


sys.modules[__name__].__class__ = _Kernels
