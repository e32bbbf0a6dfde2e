"""The systems that the kernels are for: an F-engine and an X-engine, from samples to voltages to visibilities.

``channelise`` and ``correlate`` run them on recordings and arrays (``jobs``); ``FEngine``, ``XEngine`` and ``FXEngine``
on any source and sink of ``streams``. The rooms in here import one way, too: ``jobs``; ``digitiser``, ``fx``, ``plots``
and ``sky``; ``simulated``; ``f``, ``x``, ``files`` and ``network``; ``run``; ``kernels`` and ``corrections``;
``machine`` and ``streams``.

This room imports from those that run kernels (runtime, source, devices and below), from records, which say which config
is fastest, from emit and prediction, which foretell what they do not say, and from sweep, which tunes it.
"""

from .f.engine import FEngine
from .fx.engine import FXEngine
from .jobs import Bands, Narrow, Running, channelise, correlate
from .streams.phase_centre import PhaseCentre
from .x.engine import XEngine

__all__ = ["Bands", "FEngine", "FXEngine", "Narrow", "PhaseCentre", "Running", "XEngine", "channelise", "correlate"]
