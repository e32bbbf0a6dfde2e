"""The visibilities that theory expects from a simulated sky's point sources.

A source's wave reaches antenna i late by tau_i, and an engine makes the antenna's samples later by d_i: a visibility of
antennas i and j turns by -2 pi f (tau_i + d_i - tau_j - d_j), with the sky's frequency f, where the phases that come
with d_i are those of the band's middle (docs/engines-sky.md).
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from math import pi

import numpy as np

from ...core.errors import UsageError
from ..corrections.delays import DelayModel
from ..files import checks
from ..streams.visibilities import VisibilityInfo
from .sky_samples import BLOCK, FADE, faded
from .spec import Sky
from .track import Track

# Delays of both polarisations by the antenna's name, as read_delays returns them.
DelaysByAntenna = Mapping[str, Sequence[DelayModel]]


def visibilities(
    sky: Sky,
    i: int,
    j: int,
    times_s: np.ndarray,
    frequencies_hz: np.ndarray,
    delays: DelaysByAntenna | None = None,
    pols: tuple[int, int] = (0, 0),
    integration_s: float = 0.0,
    width_hz: float = 0.0,
    lead_s: float = 0.0,
) -> np.ndarray:
    """Returns the correlation coefficients of antennas i and j: complex128 [n_times, n_frequencies].

    They are V_ij / sqrt(V_ii V_jj), with V_ij of the polarisation ``pols[0]`` of antenna i times the conjugate of
    ``pols[1]`` of antenna j. Tones are not in it, and neither is what a delay that is not stopped loses in a channel.

    Args:
        times_s: float64 [n_times], seconds from the recording's first sample on.
        frequencies_hz: float64 [n_frequencies], as on the sky; where the sky states none, the band begins at 0.
        delays: what the engine was given, with phases of the band's middle; None: nothing.
        integration_s: a coefficient is a mean over such a time about its own, in which phases are linear;
        width_hz: and over such a width of the band.
        lead_s: a delay is that of the timestamp, so long before the middle of the filter, which ``times_s`` are.
    """
    rate = sky.sample_rate_hz
    f = np.asarray(frequencies_hz, float) / rate
    times = np.asarray(times_s, float) * rate
    lead = lead_s * rate
    here, there = (_Phases(sky, antenna, pol, times, f, delays, lead) for antenna, pol in ((i, pols[0]), (j, pols[1])))
    gain = faded((f - sky.low) / 0.5, FADE) ** 2
    coherencies = [source.components @ source.components.T for source in sky.sources]
    total = np.zeros((len(times), len(f)), complex)
    for source, coherency in enumerate(coherencies):
        turned = here.turns[source] - there.turns[source]
        over_time = np.sinc((here.rates[source] - there.rates[source]) * (integration_s * rate))
        over_band = np.sinc((here.late[source] - there.late[source]) * (width_hz / rate))[:, np.newaxis]
        total += coherency[pols] * gain * np.exp(2j * pi * turned) * over_time * over_band
    if i == j and pols[0] == pols[1]:
        total += 1
    powers = [1 + sum(coherency[pol, pol] for coherency in coherencies) * gain for pol in pols]
    return np.asarray(total / np.sqrt(powers[0] * powers[1]))


def theory_of(
    sky: Sky, info: VisibilityInfo, delays: DelaysByAntenna | None = None, window_samples: int = 0
) -> Callable[..., np.ndarray]:
    """Returns ``visibilities`` as pictures ask for them: by numbers of the antennas in ``info``, and by times.

    Args:
        delays: the delays that the engine was given.
        window_samples: the samples in a spectrum, from its timestamp on.

    Raises:
        UsageError: when an antenna is not one of the sky's.
    """
    numbers = {antenna.name: number for number, antenna in enumerate(sky.antennas)}
    for antenna in info.antennas:
        if antenna.antenna not in numbers:
            raise UsageError(f"the sky has no antenna {antenna.antenna!r}; it has {', '.join(numbers)}")
    places = [numbers[antenna.antenna] for antenna in info.antennas]
    lead_s = window_samples / 2 / sky.sample_rate_hz
    start_s = sky.first_timestamp / sky.sample_rate_hz - lead_s

    def theory(i: int, j: int, times_s: np.ndarray, frequencies_hz: np.ndarray, **rest: float) -> np.ndarray:
        pol = int(rest.pop("pol", 0))
        since = np.asarray(times_s) - start_s
        pols = pol, pol
        return visibilities(sky, places[i], places[j], since, frequencies_hz, delays, pols, lead_s=lead_s, **rest)

    return theory


class _Phases:
    """The phases of an antenna's waves, in cycles, for each source.

    ``turns``: float64 [n_sources, n_times, n_frequencies]; ``rates``: the same, cycles a sample; ``late``: samples by
    which they are late after the engine's delay, [n_sources, n_times].
    """

    def __init__(
        self,
        sky: Sky,
        antenna: int,
        pol: int,
        times: np.ndarray,
        f: np.ndarray,
        delays: DelaysByAntenna | None,
        lead: float,
    ) -> None:
        track, model = Track(sky, BLOCK), _model(sky.antennas[antenna].name, pol, delays)
        n = len(sky.sources)
        self.late = np.zeros((n, len(times)))
        self.turns, self.rates = np.zeros((2, n, len(times), len(f)))
        for place, time in enumerate(times.tolist()):
            d, slope, cycles, cycles_each = _delay_and_phase(model, sky.first_timestamp, time - lead)
            tau, growth = (each[1:, antenna, np.newaxis] for each in track.at(time - d))
            self.late[:, place] = tau[:, 0] + d
            self.turns[:, place] = -f * tau - (f - sky.centre) * d + cycles
            self.rates[:, place] = -f * growth * (1 - slope) - (f - sky.centre) * slope + cycles_each


def _model(name: str, pol: int, delays: DelaysByAntenna | None) -> DelayModel:
    if delays is None:
        return DelayModel()
    models = delays.get(name) or delays.get(checks.ALL_OTHERS)
    return DelayModel() if models is None else models[pol]


def _delay_and_phase(model: DelayModel, first: int, time: float) -> tuple[float, float, float, float]:
    """Returns the delay at a time of the recording and its rate, and the phase and its rate in cycles."""
    pieces = model.pieces
    piece = pieces[max(bisect_right([each.start for each in pieces], first + int(time)) - 1, 0)]
    since = time - (piece.start - first)
    delay, phase = piece.delay + piece.rate * since, piece.phase + piece.phase_rate * since
    return delay, piece.rate, phase / (2 * pi), piece.phase_rate / (2 * pi)
