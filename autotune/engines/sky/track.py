"""The delay of each source at each antenna over time, linear in pieces, and the delay models that undo it.

A wave that an antenna gets at time t passed the reference point at t - tau(t). Times are samples, tau too.
"""

from math import ceil, pi

import numpy as np

from ..corrections.delays import DelayModel, Piece
from ..corrections.fringe_stopping import TURN_RAD_S
from .geometry import axes, delays_s
from .spec import Sky

PIECE_S = 4.0  # within it, the delay over 10 km of baseline is linear to 4e-13 s


class Track:
    """The delays tau of the phase centre, number 0, and of the sources behind it.

    Args:
        unit: samples of which pieces are a multiple.
    """

    def __init__(self, sky: Sky, unit: int) -> None:
        self._sky = sky
        self.piece = unit * max(1, round(PIECE_S * sky.sample_rate_hz / unit))  # samples
        self._cosines = np.array([(0.0, 0.0), *((source.l, source.m) for source in sky.sources)])
        self._baselines_m = sky.positions_m - sky.positions_m.mean(axis=0)

    def linear(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the delays at the first sample of a piece, and samples a sample that they grow by.

        float64 [1 + n_sources, n_antennas] each. A piece leads from one true delay to the next.
        """
        here, there = self._delays_at(number * self.piece), self._delays_at((number + 1) * self.piece)
        return here, (there - here) / self.piece

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Returns the result of ``linear`` at a time of the recording, whose first sample has time 0."""
        number = int(time // self.piece)
        delays, rates = self.linear(number)
        return delays + rates * (time - number * self.piece), rates

    def models(self) -> list[DelayModel]:
        """Returns the delay model for each antenna that compensates the delay of the phase centre.

        An engine's delay d is a function of the time at which samples leave it, which is the reference point's time.
        What was received at t + tau(t) leaves at t, so tau = a + b t becomes d = -(a + b t) / (1 - b). The phase is
        -2 pi f d, with the sky's frequency f in the middle of the band (docs/chain.md).
        """
        models = [DelayModel() for _ in self._sky.antennas]
        for number in range(ceil(self._sky.n_samples / self.piece)):
            (delays, *_), (rates, *_) = self.linear(number)
            for model, delay, rate in zip(models, delays.tolist(), rates.tolist(), strict=True):
                begin = number * self.piece - ceil(delay)  # when its first sample leaves
                if number == 0:
                    begin -= ceil(abs(delay)) + 1  # what is before the first sample belongs to it
                model.add(self._piece(begin, delay + rate * (begin - number * self.piece), rate))
        return models

    def _piece(self, begin: int, delay: float, rate: float) -> Piece:
        """Returns the piece from ``begin`` on of an engine's delay, where tau(begin) = ``delay``."""
        d, slope, f = -delay / (1 - rate), -rate / (1 - rate), self._sky.centre
        return Piece(
            start=self._sky.first_timestamp + begin,
            delay=d,
            rate=slope,
            phase=-2 * pi * (f * d % 1),
            phase_rate=-2 * pi * f * slope,
        )

    def _delays_at(self, time: int) -> np.ndarray:
        sky = self._sky
        turned = TURN_RAD_S * time / sky.sample_rate_hz
        seen = axes(sky.hour_angle + turned, sky.declination, sky.longitude)
        return delays_s(seen, self._cosines, self._baselines_m) * sky.sample_rate_hz
