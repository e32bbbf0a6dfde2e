"""The systems that the kernels are for: an F-engine and an X-engine, from samples to voltages to visibilities.

``channelise`` and ``correlate`` run them on recordings and arrays; ``FEngine``, ``XEngine`` and ``FXEngine`` on any
``stream.Source`` and sink. This room imports from those that run kernels (runtime, source, devices and below), from
records, which say which config is fastest, and from sweep, which tunes what they do not know.
"""

from .f_engine import FEngine
from .fx_engine import FXEngine
from .jobs import Bands, Narrow, channelise, correlate
from .x_engine import XEngine

__all__ = ["Bands", "FEngine", "FXEngine", "Narrow", "XEngine", "channelise", "correlate"]
