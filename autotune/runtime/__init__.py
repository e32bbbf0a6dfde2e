"""Runs tuned kernels without the tuner: wisdom, lookup, launcher, and access to the GPU.

It imports ``core`` only. Packages that ``autotune emit`` writes bring both folders along as they are.
"""

from .cupy_cache import settle_cupy_cache

settle_cupy_cache()  # before anything here imports CuPy
