"""Delay models that stop the fringes of a direction, from the positions of antennas and the recording's time.

A wave that an antenna gets at a time u passed the array's reference point, the mean of its positions, at u - tau(u),
with tau = -s b / c: s leads to the source as it is seen then, and b is the antenna's position less that of the
reference point (A. R. Thompson, J. M. Moran, G. W. Swenson, Interferometry and Synthesis in Radio Astronomy, 3rd
edition, section 3.1). Samples leave an engine at the reference point's time t = u - tau(u): its delay is d(t) = -tau(t
- d), and the phase -2 pi f d is that of the sky's frequency f in the middle of the band.

There is neither troposphere, nor a model of clocks, nor tides of the solid Earth: this is for connected arrays.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor, pi, sqrt
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..streams.phase_centre import PhaseCentre
from ..streams.samples import SampleInfo
from .delays import DelayModel, Piece
from .directions import (
    icrs_of,
    least_elevation,
    location_of,
    must_have_astropy,
    orientation_error,
    towards,
    why_not_geocentric,
)

LIGHT_M_S = 299792458.0
TURN_RAD_S = 7.2921150e-5  # rotation of the Earth against the stars
MOST_DELAY_ERROR_S, MOST_PHASE_ERROR_DEG = 1e-13, 0.1  # errors of a baseline because pieces are linear
LONGEST_PIECE_S = 10.0
CONNECTED_M = 10e3  # a longer baseline needs more than geometry
NEEDED = ("position_m", "centre_frequency_hz", "sync_time_unix", "n_samples")


def stopping_models(
    infos: Sequence[SampleInfo], centre: PhaseCentre, middle: float, tell: Callable[[str], None]
) -> list[DelayModel]:
    """Returns a delay model for each antenna that stops the fringes of a direction while the samples last.

    Args:
        infos: the headers of all antennas; their times have the same zero.
        middle: samples of the first antenna from a spectrum's timestamp, where an engine takes its delay, to the middle
            of its filter, where the delay must be right.
        tell: takes lines about the length of pieces, and about possible errors.

    Raises:
        UsageError: when astropy is not installed, or an antenna's header lacks the place, time or frequency of its
            samples, or their number.
    """
    must_have_astropy()
    _must_be_known(infos)
    positions = np.array([info.position_m for info in infos])
    location = location_of(positions)
    baselines = positions - positions.mean(axis=0)
    longest_m = max(float(np.linalg.norm(positions - each, axis=1).max()) for each in positions)
    rate = infos[0].sample_rate_hz
    piece_s = piece_length(longest_m, max(map(_highest, infos)))
    shares = [Fraction(info.sample_rate_hz) / Fraction(rate) for info in infos]
    step = 1 if set(shares) == {1} else 2  # complex samples are half as many as real ones: both begin with a sample
    piece = max(step, floor(piece_s * rate) // step * step)
    margin = ceil(middle + np.linalg.norm(baselines, axis=1).max() / LIGHT_M_S * rate) + 1
    begins = [floor(info.first_timestamp / share) for info, share in zip(infos, shares, strict=True)]
    lengths = [ceil((info.n_samples or 0) / share) for info, share in zip(infos, shares, strict=True)]
    start = (min(begins) - margin) // step * step
    end = max(begin + n for begin, n in zip(begins, lengths, strict=True)) + margin
    n_pieces = ceil((end - start) / piece)
    times = _times(infos[0], start + Fraction(middle), piece, n_pieces + 1)
    seen = towards(icrs_of(centre, location), location, times)
    tau = -(seen @ baselines.T) * (rate / LIGHT_M_S)  # samples, [n_times, n_antennas], at the antennas' own times
    delays = -tau / (1 - np.gradient(tau, piece, axis=0))
    tell(
        f"fringes of {centre.name} are stopped: delays are linear over pieces of {piece / rate:.3g} s, within "
        f"{MOST_DELAY_ERROR_S * 1e12:g} ps and {MOST_PHASE_ERROR_DEG:g} degrees of geometry"
    )
    _tell_doubts(longest_m, max(map(_highest, infos)), least_elevation(seen, location), times[n_pieces // 2], tell)
    return [
        _model(round(start * share), round(piece * share), column * float(share), info)
        for column, info, share in zip(delays.T, infos, shares, strict=True)
    ]


def piece_length(longest_m: float, highest_hz: float) -> float:
    """Returns the longest linear piece in seconds. In its middle a chord is off by T^2 / 8 times the largest curvature.

    A delay of a baseline b has at most the curvature (turn of the Earth)^2 b / c.
    """
    error_s = min(MOST_DELAY_ERROR_S, MOST_PHASE_ERROR_DEG / 360 / highest_hz)
    curvature = TURN_RAD_S**2 * longest_m / LIGHT_M_S
    return min(LONGEST_PIECE_S, sqrt(8 * error_s / curvature)) if curvature else LONGEST_PIECE_S


def _model(start: int, piece: int, delays: np.ndarray, info: SampleInfo) -> DelayModel:
    """Returns the model of an antenna. ``delays`` are in samples, at the times where pieces meet."""
    turn = -2 * pi * float(info.centre_frequency_hz or 0.0) / info.sample_rate_hz
    rates = np.diff(delays) / piece
    phases = turn * delays[:-1] % (2 * pi)
    values = zip(delays.tolist(), rates.tolist(), phases.tolist(), (turn * rates).tolist(), strict=False)
    return DelayModel(*(Piece(start + piece * number, *each) for number, each in enumerate(values)))


def _times(info: SampleInfo, first: Fraction, step: int, n: int) -> Any:
    """Returns astropy's Time of ``n`` times that are ``step`` samples apart, from ``first`` on."""
    from astropy.time import Time

    assert info.sync_time_unix is not None
    begin = info.sync_time_unix + first / Fraction(info.sample_rate_hz)
    whole = floor(begin)
    return Time(float(whole), float(begin - whole) + np.arange(n) * (step / info.sample_rate_hz), format="unix")


def _must_be_known(infos: Sequence[SampleInfo]) -> None:
    lacking = [
        f"{name} of antenna {info.antenna or number}"
        for number, info in enumerate(infos)
        for name in NEEDED
        if getattr(info, name) is None
    ]
    if lacking:
        raise UsageError(f"a phase centre needs what is not known, {', '.join(lacking)}: give it with the samples")
    for info in infos:
        if why := why_not_geocentric(info):
            raise UsageError(f"a phase centre needs geocentric positions; {why}")


def _highest(info: SampleInfo) -> float:
    """Returns the highest frequency of the band in Hz."""
    assert info.centre_frequency_hz is not None
    return info.centre_frequency_hz + info.sample_rate_hz / (2 if info.is_complex else 4)


def _tell_doubts(
    longest_m: float, highest_hz: float, elevation_deg: float, time: Any, tell: Callable[[str], None]
) -> None:
    """Passes lines to ``tell`` about possible errors of pure geometry."""
    if longest_m > CONNECTED_M:
        tell(
            f"the longest baseline is {longest_m / 1e3:.1f} km: these delays have neither troposphere, nor "
            "clocks, nor tides; beyond 10 km give a file of delays (--delays) that has them"
        )
    if elevation_deg < 0:
        tell(f"the phase centre is {-elevation_deg:.1f} degrees below the horizon: check its coordinates, and the time")
    problem, arcsec = orientation_error(time)
    if problem:
        phase_deg = 360 * longest_m * highest_hz / LIGHT_M_S * np.radians(arcsec / 3600)
        tell(
            f"the Earth's orientation of {time.utc.strftime('%Y-%m-%d')} {problem} astropy's table: sources may be "
            f"off by {arcsec:.2g} arc seconds, {phase_deg:.2g} degrees of phase on the longest baseline; a newer "
            "astropy-iers-data corrects this; nothing is downloaded"
        )
