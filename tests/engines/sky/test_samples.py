"""Simulated samples: blocks without seams, in any order; delays of parts of a sample; powers, tones and saturation."""

from dataclasses import replace
from math import pi, sqrt

import numpy as np
import pytest

from autotune.engines.corrections.fringe_stopping import LIGHT_M_S
from autotune.engines.sky.sky_samples import BLOCK, FADE, SkySamples
from autotune.engines.sky.spec import Antenna, PointSource, Sky, Tone

RATE_HZ = 1e8
POLE = dict(hour_angle=0.0, declination=pi / 2)  # a phase centre that does not move: delays are those along z
QUIET = dict(noise_level=1e-3, sample_bits=16)  # and sources of flux 1e12 have the rms 1000


def sky(late: list[float], n: int = 3 * BLOCK + 1001, **parts: object) -> Sky:
    """Antennas that the phase centre reaches so many samples late, less their mean."""
    middle = np.array([5e6, 1e6, -3e6])
    heights = [-LIGHT_M_S * each / RATE_HZ for each in late]
    antennas = tuple(Antenna(f"m{i}", (*middle[:2], middle[2] + h)) for i, h in enumerate(heights))
    given = dict(sample_rate_hz=RATE_HZ, sample_bits=10, n_pols=2, n_samples=n, first_timestamp=0, seed=1)
    return Sky(**{**given, **POLE, "noise_level": 20.0, "antennas": antennas, **parts})


def samples_of(made: Sky) -> np.ndarray:
    """int16 [n_antennas, n_pols, n_samples]."""
    samples = SkySamples(made)
    return np.concatenate([np.stack(list(samples.block(i))) for i in range(samples.n_blocks)], axis=2)


FULL = sky(
    [0, 41.3, -700.8, 100_000.5],
    sources=(PointSource(0, 0, 0.5), PointSource(1e-3, 2e-3, 0.3, 1.0, 20.0)),
    tones=(Tone(3e7, 5.0),),
    centre_frequency_hz=1e9,
)


def test_a_block_depends_on_its_number_alone() -> None:
    found = samples_of(FULL)
    assert found.shape == (4, 2, FULL.n_samples) and found.dtype == np.int16
    for number in (2, 0, 3, 1):
        alone = np.stack(list(SkySamples(FULL).block(number)))
        assert np.array_equal(alone, found[:, :, number * BLOCK : (number + 1) * BLOCK])
    backwards = SkySamples(FULL)
    assert np.array_equal(np.stack([list(backwards.block(i)) for i in (2, 1)][1]), found[:, :, BLOCK : 2 * BLOCK])
    shorter = samples_of(replace(FULL, n_samples=BLOCK + 77))
    assert np.array_equal(shorter, found[:, :, : BLOCK + 77])
    assert (samples_of(replace(FULL, seed=2, n_samples=1000)) != found[:, :, :1000]).mean() > 0.9


@pytest.mark.parametrize("centre_frequency_hz", [None, 1.2345e9])
@pytest.mark.parametrize("late", [0.5, -3.3, 60.0, 3 * BLOCK / 7])
def test_delays_are_those_of_theory_across_blocks(late: float, centre_frequency_hz: float | None) -> None:
    """The other antenna's samples are one FFT of all, turned; but for the ends, where that is circular."""
    made = sky(
        [0, late], sources=(PointSource(0, 0, 1e12),), centre_frequency_hz=centre_frequency_hz, n_pols=1, **QUIET
    )
    (one,), (other,) = samples_of(made).astype(float)
    frequencies = np.fft.rfftfreq(one.size)
    low = 0 if centre_frequency_hz is None else centre_frequency_hz / RATE_HZ - 1 / 4
    turned = np.fft.rfft(one) * np.exp(-2j * pi * (frequencies + low) * late)
    expected = np.fft.irfft(turned, one.size)
    inner = slice(int(abs(late)) + 3000, -int(abs(late)) - 3000)
    assert one.std() == pytest.approx(1000, rel=0.03)
    assert np.abs(other - expected)[inner].max() < 2, "the rounding of both, and ends of the circle"
    wrong = np.fft.irfft(np.fft.rfft(one) * np.exp(2j * pi * (frequencies + low) * late), one.size)
    assert np.abs(other - wrong)[inner].max() > 1000


def test_powers_and_polarisations() -> None:
    made = sky([0, 0], n=8 * BLOCK, sources=(PointSource(0, 0, 0.5, 0.6, 30.0),))
    x = samples_of(made).reshape(4, -1) / 20.0
    found = x @ x.T / x.shape[1]
    c, s = np.cos(2 * pi * 30 / 180), np.sin(2 * pi * 30 / 180)
    coherency = 0.5 * (1 - 5 / 4 * FADE) * np.array([[1 + 0.6 * c, 0.6 * s], [0.6 * s, 1 - 0.6 * c]])
    expected = np.tile(coherency, (2, 2)) + np.eye(4) * (1 + 1 / 12 / 400)
    assert np.abs(found - expected).max() < 5 * 2 / sqrt(x.shape[1])
    power = np.mean(np.abs(np.fft.rfft(x[0].reshape(-1, 512), axis=1)) ** 2, axis=0) / 512
    flat = 1 + 0.5 * (1 + 0.6 * c)
    assert np.abs(power[8:-8].mean() - flat) < 0.02 and power[0] < 1.2 and power[-1] < 1.2


def test_tones_are_cosines_at_their_antennas() -> None:
    tones = (Tone(1.012345e9, 300.0, 0.7, ("m1",)), Tone(9.8e8, 100.0))
    made = sky([0, 5.5], tones=tones, centre_frequency_hz=1e9, **QUIET)
    found, n = samples_of(made), np.arange(made.n_samples)
    low = 1e9 - RATE_HZ / 4
    common = 100 * np.cos(2 * pi * (9.8e8 - low) / RATE_HZ * n)
    own = 300 * np.cos(2 * pi * (1.012345e9 - low) / RATE_HZ * n + 0.7)
    assert np.abs(found[0] - common).max() < 0.6 and np.abs(found[1] - common - own).max() < 0.6


@pytest.mark.parametrize("bits", [2, 4, 8, 10])
def test_what_is_too_large_is_clipped(bits: int) -> None:
    most = 2 ** (bits - 1) - 1
    found = samples_of(sky([0], n=20_000, sample_bits=bits, noise_level=float(most)))
    assert (found.min(), found.max()) == (-most, most)
    assert np.mean(np.abs(found) == most) > 0.3 and abs(found.mean()) < 0.1 * most
