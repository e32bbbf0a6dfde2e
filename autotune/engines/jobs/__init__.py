"""Engines for what people have: recordings or arrays in; files, arrays and pictures out.

``channelise`` makes voltages of one antenna's samples, ``correlate`` visibilities of several antennas' samples or
voltages. This room imports from all other rooms of engines but ``service``.
"""

from .band_settings import Bands, Narrow
from .channelise import BandResult, ChanneliseResult, channelise
from .correlate import CorrelateResult, correlate
from .dumps import Dumps
from .running import Running

__all__ = [
    "BandResult",
    "Bands",
    "ChanneliseResult",
    "CorrelateResult",
    "Dumps",
    "Narrow",
    "Running",
    "channelise",
    "correlate",
]
