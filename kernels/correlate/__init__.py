"""correlate: products of all pairs of receivers, on tensor cores. ``correlate.py`` has the definition."""

from .correlate import Correlate, Problem, n_blocks, n_chains, samples

__all__ = ["Correlate", "Problem", "n_blocks", "n_chains", "samples"]
