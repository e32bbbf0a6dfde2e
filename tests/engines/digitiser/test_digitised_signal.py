"""Packets are what NumPy makes of the signals' samples, whatever the range, once or in periods."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune import UsageError, unpack_samples
from autotune.engines.digitiser.counter_noise import BLOCK, dither_block
from autotune.engines.digitiser.digitised_signal import DigitisedSignal
from autotune.engines.digitiser.repeated_signal import MOST_PERIOD, RepeatedSignal
from autotune.engines.digitiser.signal_language import parsed_signal
from autotune.engines.digitiser.waveforms import ConstantSignal, Signal

from .test_waveforms import samples_of

pytestmark = pytest.mark.quick

RATE, PACKET = 1e6, 48
TEXTS = ("tone(123456.7, 0.9) + sky", "delay(tone(123456.7, 0.9), 1.3e-6) + delay(sky, 5e-6) + comb(1e4, 0.1)")
WRAP = (1 << 48) // PACKET * PACKET  # the last packet that begins before 2^48


def signals(*texts: str) -> list[Signal]:
    sky = {"sky": parsed_signal("noise(0.1, seed=7)", RATE, {}, "sky")}
    return [parsed_signal(text, RATE, sky, "it") for text in texts]


def digitised(bits: int = 10, dither: int | None = 5, texts: tuple[str, ...] = TEXTS) -> DigitisedSignal:
    return DigitisedSignal(signals(*texts), bits, PACKET, dither)


def reference(bits: int, dither: int | None, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The quantised samples, float64 [2, n], and which of them are saturated."""
    most = 2 ** (bits - 1) - 1
    x = np.array([samples_of(signal, begin, n) for signal in signals(*TEXTS)]) * most
    if dither is not None:
        first, last = begin // BLOCK, (begin + n - 1) // BLOCK
        for pol in range(2):
            added = np.concatenate([dither_block(dither, pol, number) for number in range(first, last + 1)])
            x[pol] += added[begin - first * BLOCK :][:n]
    x = np.round(x)
    return np.minimum(np.maximum(x, -most - 1), most), (x > most) | (x < -most - 1)


@pytest.mark.parametrize("begin", [0, -PACKET * 7, WRAP - PACKET, WRAP * 1000])
@pytest.mark.parametrize(("bits", "dither"), [(2, 1), (3, None), (8, None), (10, 1), (12, 1), (16, None)])
def test_packets_are_those_of_numpy(bits: int, dither: int | None, begin: int) -> None:
    n = PACKET * 400  # more than a block
    packed, saturated = digitised(bits, dither).read(begin, n)
    expected, beyond = reference(bits, dither, begin, n)
    assert packed.dtype == np.uint8 and packed.shape == (2, n * bits // 8)
    np.testing.assert_array_equal([unpack_samples(row, bits, 0, n) for row in packed], expected)
    np.testing.assert_array_equal(saturated, beyond.reshape(2, -1, PACKET).sum(axis=2))
    assert saturated.sum() > 0


@given(
    begin=st.one_of(st.integers(-3 * BLOCK, 3 * BLOCK), st.integers((1 << 48) - BLOCK, (1 << 48) + BLOCK)),
    sizes=st.lists(st.integers(1, BLOCK), min_size=1, max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_samples_are_the_same_however_they_are_cut(begin: int, sizes: list[int]) -> None:
    whole = digitised().samples(begin, sum(sizes))
    other, parts, at = digitised(), [], begin
    for n in sizes:
        parts.append(other.samples(at, n))
        at += n
    for found, expected in zip(zip(*parts, strict=True), whole, strict=True):
        np.testing.assert_array_equal(np.concatenate(found, axis=1), expected)


@pytest.mark.parametrize("bits", range(2, 17))
def test_limits_are_those_of_twos_complement(bits: int) -> None:
    most = 2 ** (bits - 1) - 1
    for level, value, is_saturated in ((1.0, most, 0), (-1.0, -most, 0), (3.0, most, 1), (-3.0, -most - 1, 1)):
        packed, saturated = DigitisedSignal([ConstantSignal(level)], bits, PACKET).read(0, PACKET)
        assert set(unpack_samples(packed[0], bits, 0, PACKET)) == {value}
        assert saturated.tolist() == [[is_saturated * PACKET]]
    lowest = DigitisedSignal([ConstantSignal(-(most + 1) / most)], bits, PACKET)
    assert set(lowest.samples(0, 9)[0][0]) == {-most - 1} and not lowest.samples(0, 9)[1].any()


def test_halves_are_rounded_to_even() -> None:
    for level, value in ((0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (126.5, 126)):
        values, _ = DigitisedSignal([ConstantSignal(level / 127)], 8, 8).samples(0, 3)
        assert set(values[0]) == {value}


def test_dither_makes_the_mean_right_and_differs_between_polarisations() -> None:
    n = 1 << 16
    values, _ = DigitisedSignal([ConstantSignal(0.25 / 127)] * 2, 8, 8, dither=1).samples(0, n)
    assert (np.abs(values.mean(axis=1) - 0.25) < 5 / n**0.5).all() and set(values.flat) == {0, 1}
    assert abs(np.corrcoef(values)[0, 1]) < 5 / n**0.5
    other, _ = DigitisedSignal([ConstantSignal(0.25 / 127)] * 2, 8, 8, dither=2).samples(0, n)
    assert abs(np.corrcoef(values[0], other[0])[0, 1]) < 5 / n**0.5
    noise, _ = digitised(16, None, ("noise(0.1, seed=1)",)).samples(0, n)
    assert abs(np.corrcoef(noise[0], values[0])[0, 1]) < 5 / n**0.5  # a seed is another one for noise
    assert dither_block(1, 0, 5).min() >= -0.5 and dither_block(1, 0, 5).max() < 0.5


def test_a_tone_has_its_power_at_its_frequency() -> None:
    n, channel = 1 << 14, 1234
    tone = DigitisedSignal(signals(f"tone({RATE * channel / n!r}, 0.5)"), 16, PACKET)
    power = np.abs(np.fft.rfft(tone.samples((1 << 48) - 77, n)[0][0] / 32767)) ** 2 / n**2
    assert power.argmax() == channel
    assert power[channel] == pytest.approx(0.5**2 / 4, rel=1e-5)
    assert power.sum() - power[channel] < 1e-8


def test_antennas_that_share_a_seed_share_the_noise() -> None:
    n = 1 << 16
    here, there, other = (
        digitised(texts=(f"sky + noise(0.1, seed={seed})",), dither=seed).samples(0, n)[0][0] for seed in (1, 2, 3)
    )
    for a, b in ((here, there), (here, other)):
        assert np.corrcoef(a, b)[0, 1] == pytest.approx(0.5, abs=5 / n**0.5)
    same = [digitised(dither=dither).samples(0, n)[0] for dither in (1, 1, 2)]
    assert (same[0] == same[1]).all() and (same[0] != same[2]).any()


@pytest.mark.parametrize(
    ("n_pols", "bits", "packet", "why"),
    [
        (0, 10, 48, "there are 0 signals; a digitiser has one for each of 1 or 2 polarisations"),
        (3, 10, 48, "there are 3 signals"),
        (2, 1, 48, "sample_bits=1, must be 2 to 16"),
        (2, 17, 48, "sample_bits=17, must be 2 to 16"),
        (2, 10, 47, "packet=47 samples of 10 bits are not whole bytes; give a multiple of 8"),
        (2, 10, 0, "packet=0 samples of 10 bits are not whole bytes"),
    ],
)
def test_what_cannot_be_digitised_is_told(n_pols: int, bits: int, packet: int, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        DigitisedSignal([ConstantSignal(0)] * n_pols, bits, packet)
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(("begin", "n"), [(1, PACKET), (0, 1), (0, -PACKET)])
def test_reading_parts_of_packets_is_refused(begin: int, n: int) -> None:
    for packets in (digitised(), RepeatedSignal(digitised(), PACKET, RATE)):
        with pytest.raises(UsageError, match=f"samples {begin} to {begin + n} are not whole packets of 48 samples"):
            packets.read(begin, n)


# ---------------------------------------------------------------------- periods
def test_a_period_repeats_what_is_nearest() -> None:
    told: list[str] = []
    period = 400 * PACKET
    repeated = RepeatedSignal(digitised(), period, RATE, told.append)
    assert repeated.packed.shape == (2, 400, PACKET * 10 // 8) and repeated.saturated.shape == (2, 400)
    cycles = round(123456.7 / RATE * period)
    near = cycles * RATE / period
    assert told == [f"the tone of 123456.7 Hz is made at {near:.12g} Hz, which repeats every {period} samples"]
    texts = tuple(text.replace("123456.7", repr(near)) for text in TEXTS)
    at = 200  # behind the delay, before which noise is that of the period's end
    expected, _ = digitised(texts=texts).samples(0, period)
    found = np.array([unpack_samples(row, 10, 0, period) for row in repeated.packed.reshape(2, -1)])
    assert np.count_nonzero(found[:, at:] != expected[:, at:]) <= 2  # phases at a rounding boundary
    n = period + 3 * PACKET
    for begin in (0, 5 * PACKET, -PACKET, WRAP, WRAP * 1000):
        packed, saturated = repeated.read(begin, n)
        places = (begin // PACKET + np.arange(n // PACKET)) % 400
        np.testing.assert_array_equal(packed.reshape(2, -1, 60), repeated.packed[:, places])
        np.testing.assert_array_equal(saturated, repeated.saturated[:, places])


def test_a_periodic_tone_has_no_step_where_it_begins_again() -> None:
    period = 100 * PACKET
    exact = DigitisedSignal(signals("tone(4321.1, 0.5) * tone(100000.3, 1)"), 16, PACKET)
    packed, _ = RepeatedSignal(exact, period, RATE).read(-period // 2, period)
    spectrum = np.abs(np.fft.rfft(unpack_samples(packed[0], 16, 0, period)))
    lines = [abs(round(100000.3 / RATE * period) + sign * round(4321.1 / RATE * period)) for sign in (-1, 1)]
    assert sorted(np.argsort(spectrum)[-2:]) == sorted(lines)
    assert np.sort(spectrum)[-3] < 1e-4 * spectrum.max()


def test_nothing_is_told_of_what_fits() -> None:
    told: list[str] = []
    rate = PACKET * 1e6
    signal = parsed_signal("tone(5e6, 0.5) * tone(0, 1) + comb(3e6, 0.1) + noise(0.1, seed=1)", rate, {}, "it")
    RepeatedSignal(DigitisedSignal([signal], 8, PACKET), PACKET, rate, told.append)
    assert told == []


def test_a_slow_tone_does_not_become_a_constant() -> None:
    told: list[str] = []
    RepeatedSignal(DigitisedSignal(signals("tone(0.001, 0.5)"), 8, PACKET), PACKET, RATE, told.append)
    nearest = float(Fraction(RATE) / PACKET)
    assert told == [f"the tone of 0.001 Hz is made at {nearest:.12g} Hz, which repeats every 48 samples"]


def test_a_period_is_made_once() -> None:
    repeated = RepeatedSignal(digitised(), PACKET, RATE)
    with pytest.raises(ValueError, match="read-only"):
        repeated.packed[0, 0, 0] = 1
    repeated.read(0, PACKET)[0][0, 0] = 1  # a copy


@pytest.mark.parametrize("period", [0, -PACKET, PACKET + 1, MOST_PERIOD + PACKET])
def test_other_periods_are_refused(period: int) -> None:
    with pytest.raises(UsageError, match=rf"period={period} samples, must be a multiple of packet=48, 48 to 268435440"):
        RepeatedSignal(digitised(), period, RATE)
