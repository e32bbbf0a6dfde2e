"""channelise: filter bank, FFT, delay, gain, quantisation and transposition. ``channelise.py`` has the definition."""

from .channelise import Channelise
from .problem import Problem

__all__ = ["Channelise", "Problem"]
