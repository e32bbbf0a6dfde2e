"""Positions against astropy's, and delay models against the delays that they make up for."""

from math import cos, pi, radians, sin

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import EarthLocation

from autotune.engines.corrections.fringe_stopping import TURN_RAD_S
from autotune.engines.sky.geometry import EAST_WEST, RANDOM, array_positions, axes, delays_s, geocentric
from autotune.engines.sky.sky_samples import BLOCK
from autotune.engines.sky.spec import Antenna, PointSource, Sky
from autotune.engines.sky.track import PIECE_S, Track


@pytest.mark.parametrize("place", [(0, 0, 0), (-30.7, 21.4, 1050), (90, 0, 10), (51.5, -179, -50), (-89, 100, 3000)])
def test_a_site_is_where_astropy_has_it(place: tuple[float, float, float]) -> None:
    latitude, longitude, height = place
    there = EarthLocation.from_geodetic(longitude * u.deg, latitude * u.deg, height * u.m)
    expected = [each.to_value(u.m) for each in there.geocentric]
    assert np.abs(geocentric(radians(latitude), radians(longitude), height) - expected).max() < 1e-6


@pytest.mark.parametrize("layout", [EAST_WEST, RANDOM])
def test_arrays_lie_flat_about_their_site(layout: str) -> None:
    site, rng = (radians(-30.7), radians(21.4), 1000.0), np.random.default_rng(0)
    positions = array_positions(layout, 400, 50.0, site, rng)
    there = EarthLocation.from_geocentric(*(positions.T * u.m))
    heights, middle = there.height.to_value(u.m), positions.mean(axis=0)
    radius = 50 * (200 if layout == EAST_WEST else (400 / pi) ** 0.5)
    assert np.abs(heights - 1000).max() < 1.1 * radius**2 / 2 / 6.3e6
    assert np.linalg.norm(positions - middle, axis=1).max() <= 1.15 * radius
    latitudes = there.lat.to_value(u.rad) - site[0]
    if layout == EAST_WEST:
        assert np.abs(np.linalg.norm(np.diff(positions, axis=0), axis=1) - 50).max() < 1e-6
        assert np.all(np.diff(there.lon.to_value(u.deg)) > 0) and np.abs(latitudes).max() * 6.4e6 < 10
    else:
        assert np.std(latitudes) * 6.36e6 == pytest.approx(radius / 2, rel=0.1)


def test_delays_of_sources_that_are_known() -> None:
    at_zenith = axes(0.0, radians(-30), radians(21))
    up = np.array([cos(radians(-30)) * cos(radians(21)), cos(radians(-30)) * sin(radians(21)), sin(radians(-30))])
    east = np.array([-sin(radians(21)), cos(radians(21)), 0])
    baselines = 299792458.0 * np.stack([up, east, -up])
    cosines = np.array([(0, 0), (0.6, 0), (0, 1.0)])
    expected = [[-1, 0, 1], [-0.8, -0.6, 0.8], [0, 0, 0]]
    assert np.abs(delays_s(at_zenith, cosines, baselines) - expected).max() < 1e-12
    rising = axes(radians(-90), 0.0, radians(21))
    assert np.abs(delays_s(rising, np.zeros((1, 2)), baselines)[0] - [0, -1, 0]).max() < 1e-12
    assert np.abs(at_zenith @ at_zenith.T - np.eye(3)).max() < 1e-12


ANTENNAS = (Antenna("a", (5.109e6, 2.006e6, -3.239e6)), Antenna("b", (5.107e6, 2.012e6, -3.236e6)))
SKY = Sky(
    sample_rate_hz=2e5,
    sample_bits=8,
    n_pols=1,
    n_samples=4_000_000,
    first_timestamp=(1 << 55) + 7,
    seed=0,
    hour_angle=1.0,
    declination=-0.5,
    noise_level=1.0,
    antennas=ANTENNAS,
    sources=(PointSource(0.1, -0.2, 1.0),),
    centre_frequency_hz=1.42e9,
)


def true_delays(times: np.ndarray) -> np.ndarray:
    """Samples of the phase centre at each antenna: float64 [n, 2]."""
    positions = np.array([antenna.position_m for antenna in ANTENNAS])
    seen = [axes(1.0 + TURN_RAD_S * time / 2e5, -0.5, SKY.longitude) for time in times]
    baselines = positions - positions.mean(axis=0)
    return np.array([delays_s(each, np.zeros((1, 2)), baselines)[0] for each in seen]) * 2e5


def test_pieces_join_and_are_near_the_truth() -> None:
    track, times = Track(SKY, BLOCK), np.arange(0, SKY.n_samples, 9973)
    assert track.piece % BLOCK == 0 and abs(track.piece / SKY.sample_rate_hz - PIECE_S) < 0.1
    found = np.array([track.at(time)[0][0] for time in times])
    assert np.abs(found - true_delays(times)).max() < 4e-13 * SKY.sample_rate_hz
    for number in range(1, 4):
        before, rates = track.linear(number - 1)
        assert np.abs(before + rates * track.piece - track.linear(number)[0]).max() < 1e-9


def test_models_take_back_what_was_late() -> None:
    """What was received at n leaves at n + d, for a d that is minus the delay at n, with the phase -2 pi f d."""
    track = Track(SKY, BLOCK)
    for antenna, model in enumerate(track.models()):
        assert len(model.pieces) == 1 + 6
        for start in (0, 123, track.piece - 2, track.piece + 5, 3_999_999):
            leaves = SKY.first_timestamp + start
            turned = model.at(leaves, 1, 1)
            d = turned.coarse[0] + turned.fine[0]
            (delay, *_), _ = track.at(start - d)
            assert d == pytest.approx(-delay[antenna], abs=1e-7)
            phase = turned.phase[0] + 2 * pi * SKY.centre * d
            assert abs(np.exp(1j * phase) - 1) < 2e-3
    flat = Track(Sky(**{**SKY.__dict__, "centre_frequency_hz": None}), BLOCK).models()[1].pieces[1]
    assert flat.phase_rate == pytest.approx(-pi / 2 * flat.rate)
