"""Signals are what plain arithmetic says of them, at all times."""

from fractions import Fraction
from math import cos, floor, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.engines.digitiser.counter_noise import BLOCK, gaussian_block
from autotune.engines.digitiser.signal_language import parsed_signal
from autotune.engines.digitiser.waveforms import CombSignal, NoiseSignal, Signal

pytestmark = pytest.mark.quick

RATE = 1712e6
TIMES = (0, 5 * BLOCK + 7, -3 * BLOCK - 1, (1 << 48) - BLOCK // 2, (1 << 61) + 12345)


def signal_of(text: str, rate: float = RATE) -> Signal:
    return parsed_signal(text, rate, {}, "it")


def samples_of(signal: Signal, begin: int, n: int) -> np.ndarray:
    """The samples of [begin, begin + n), float64."""
    first, last = begin // BLOCK, (begin + n - 1) // BLOCK
    blocks = [signal.block(number) for number in range(first, last + 1)]
    return np.concatenate(blocks)[begin - first * BLOCK :][:n]


def tone(frequency_hz: float, amplitude: float, phase: float, delay_s: float, times: range) -> np.ndarray:
    """Each sample of a tone by exact arithmetic of its turns."""
    seconds = [Fraction(time) / Fraction(RATE) - Fraction(delay_s) for time in times]
    turns = [Fraction(frequency_hz) * s + Fraction(phase / (2 * pi)) for s in seconds]
    return np.array([amplitude * cos(2 * pi * float(turn % 1)) for turn in turns])


@pytest.mark.parametrize("begin", TIMES)
@pytest.mark.parametrize("frequency_hz", [0.0, 1.0, 232.3e6, 855999999.9, 1712e6 / 3, 3e9])
def test_a_tone_is_exact_at_all_times(frequency_hz: float, begin: int) -> None:
    found = samples_of(signal_of(f"delay(tone({frequency_hz!r}, 0.7, 1.25), 1.5e-9)"), begin, 300)
    np.testing.assert_allclose(found, tone(frequency_hz, 0.7, 1.25, 1.5e-9, range(begin, begin + 300)), atol=1e-12)


def test_the_phase_of_a_tone_holds_over_a_block() -> None:
    found = signal_of("tone(232.3e6, 1)").block(1 << 40)
    at = (1 << 40) * BLOCK
    np.testing.assert_allclose(found, tone(232.3e6, 1, 0, 0, range(at, at + BLOCK)), atol=1e-11)


@pytest.mark.parametrize("begin", TIMES)
@pytest.mark.parametrize(
    "frequency", [Fraction(1), Fraction(6, 7), Fraction(2, 5), Fraction(0.123456789), Fraction(1, 9999)]
)
def test_a_comb_has_an_impulse_at_the_nearest_sample(frequency: Fraction, begin: int) -> None:
    n, delay = 2 * BLOCK, 11
    near = floor(begin * frequency)
    places = [
        floor(k / frequency + Fraction(1, 2)) + delay - begin
        for k in range(near - delay - 2, near + floor(n * frequency) + 3)
    ]
    expected = np.zeros(n)
    expected[[place for place in places if 0 <= place < n]] = 0.5
    np.testing.assert_array_equal(samples_of(CombSignal(frequency, 0.5, delay), begin, n), expected)


def test_a_comb_in_hertz_has_its_first_impulse_at_time_0() -> None:
    found = samples_of(signal_of("comb(1e6, -0.25)"), 0, 4000)
    assert np.flatnonzero(found).tolist() == [0, 1712, 3424] and set(found) == {0, -0.25}


def test_noise_is_white_and_gaussian() -> None:
    n = 1 << 18
    noise = samples_of(signal_of("noise(0.05, seed=1)"), 1 << 50, n) / 0.05
    assert abs(noise.mean()) < 5 / n**0.5
    assert abs(noise.var() - 1) < 5 * (2 / n) ** 0.5
    assert abs((noise**4).mean() - 3) < 5 * (96 / n) ** 0.5
    lags = [float(noise[lag:] @ noise[:-lag]) / n for lag in (1, 2, 100, BLOCK, 2 * BLOCK)]
    assert np.abs(lags).max() < 5 / n**0.5
    power = (np.abs(np.fft.rfft(noise.reshape(-1, 256))) ** 2).mean(axis=0)[1:-1] / 256
    assert np.abs(power - 1).max() < 6 / (n / 256) ** 0.5


def test_noise_is_that_of_its_seed() -> None:
    n = 1 << 16
    here, there, other = (
        samples_of(signal_of(text), 0, n) for text in ("noise(1, seed=1)", "2 * noise(0.5, seed=1)", "noise(1, seed=2)")
    )
    np.testing.assert_array_equal(here, there)
    assert abs(float(here @ other)) / n < 5 / n**0.5


def test_blocks_of_noise_are_independent_of_each_other_and_read_only() -> None:
    numbers = (-(1 << 63), -1, 0, 1, 1 << 47)
    blocks = np.array([gaussian_block(3, number) for number in numbers])
    assert np.abs(np.corrcoef(blocks) - np.eye(len(numbers))).max() < 5 / BLOCK**0.5
    with pytest.raises(ValueError, match="read-only"):
        gaussian_block(3, 0)[0] = 1


@pytest.mark.parametrize("delay", [0, 1, -1, BLOCK, BLOCK + 5, 10**9])
def test_delays_of_whole_samples_shift_everything(delay: int) -> None:
    text = "noise(0.1, seed=4) + comb(3e6, 0.5) * (tone(1e8, 1) - constant(0.5))"
    late = samples_of(signal_of(f"delay({text}, {delay}/{RATE})"), 1000, 500)
    np.testing.assert_allclose(late, samples_of(signal_of(text), 1000 - delay, 500), atol=1e-6)
    noise = samples_of(signal_of(f"delay(noise(1, seed=4), {delay}/{RATE})"), 1000, 500)
    np.testing.assert_array_equal(noise, samples_of(signal_of("noise(1, seed=4)"), 1000 - delay, 500))


def test_delays_add_up() -> None:
    found = samples_of(signal_of("delay(delay(tone(1e8, 1), 1e-9), 2e-9)"), 0, 100)
    np.testing.assert_allclose(found, tone(1e8, 1, 0, 3e-9, range(100)), atol=1e-12)


def test_arithmetic_is_that_of_samples() -> None:
    a, b = (samples_of(signal_of(text), 0, 100) for text in ("tone(1e8, 0.5)", "noise(0.1, seed=1)"))
    text = "-(tone(1e8, 0.5) - 3 * noise(0.1, seed=1)) / 4 + tone(1e8, 0.5) * noise(0.1, seed=1) * 2 - +constant(-0.5)"
    np.testing.assert_allclose(samples_of(signal_of(text), 0, 100), -(a - 3 * b) / 4 + 2 * a * b + 0.5, rtol=1e-14)


@given(
    frequency=st.fractions(0, 1, max_denominator=10**9),
    period=st.integers(1, 3 * BLOCK),
    delay=st.integers(-(10**6), 10**6),
)
@settings(max_examples=30, deadline=None)
def test_what_is_periodic_repeats(frequency: Fraction, period: int, delay: int) -> None:
    told: list[tuple[str, Fraction, Fraction]] = []
    for signal in (CombSignal(frequency or Fraction(1), 1.0, delay), NoiseSignal(1.0, 5, delay)):
        repeated = signal.periodic(period, lambda *each: told.append(each))
        found = samples_of(repeated, -7, 2 * period)
        np.testing.assert_array_equal(found[:period], found[period:])
    for name, was, now in told:
        assert name == "comb" and was == frequency and now * period == max(round(was * period), 1)


@pytest.mark.parametrize(("text", "most"), [("tone(1, -2)", 2), ("noise(0.5, seed=1)", 32), ("-3 * comb(1, 2)", 6)])
def test_what_a_signal_never_exceeds(text: str, most: float) -> None:
    signal = signal_of(f"{text} - constant(1)")
    assert signal.most == most + 1
    assert np.abs(samples_of(signal, 0, BLOCK)).max() <= most + 1
