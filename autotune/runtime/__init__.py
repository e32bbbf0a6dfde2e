"""Runs tuned kernels without the tuner: wisdom, lookup, launcher, and access to the GPU.

It imports only ``core``. Packages that ``autotune emit`` writes contain unchanged copies of both folders.
"""

from .cupy_cache import settle_cupy_cache

settle_cupy_cache()  # before anything here imports CuPy
