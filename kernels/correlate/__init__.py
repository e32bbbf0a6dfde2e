"""correlate: products of all pairs of receivers, on tensor cores. ``correlate.py`` has the definition."""

from .correlate import Correlate, samples
from .problem import Problem
from .space import n_blocks, n_chains

__all__ = ["Correlate", "Problem", "n_blocks", "n_chains", "samples"]
