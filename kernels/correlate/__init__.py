"""correlate: products of all pairs of receivers, on tensor cores. ``correlate.py`` has the definition."""

from .correlate import Correlate, samples
from .problem import Problem

__all__ = ["Correlate", "Problem", "samples"]
