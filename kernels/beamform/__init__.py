"""beamform: voltages of antennas to beams. ``beamform.py`` has the definition."""

from .beamform import Beamform
from .problem import Problem

__all__ = ["Beamform", "Problem"]
