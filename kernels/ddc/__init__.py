"""ddc: mix, low-pass filter and decimate packed samples. ``ddc.py`` has the definition."""

from .ddc import Ddc, fixed_point, mixer, phase_at
from .problem import Problem

__all__ = ["Ddc", "Problem", "fixed_point", "mixer", "phase_at"]
