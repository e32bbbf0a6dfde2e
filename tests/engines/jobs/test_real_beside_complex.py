"""Real samples of a band beside complex ones of the same band: one spectrum, one clock, one phase centre."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.corrections.fringe_stopping import stopping_models
from autotune.engines.jobs import Bands, Running, correlate
from autotune.engines.streams.phase_centre import PhaseCentre
from autotune.engines.streams.samples import COMPLEX_BITS, SampleInfo

from ..files import makers
from ..files.common import refused

C, HEAP, TAPS = 16, 16, 4
BAND_HZ, N = 1_000_000, 1 << 15  # complex samples
BEGIN = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
RNG = np.random.default_rng(5)


def lines() -> np.ndarray:
    """The sky's spectrum, from the lowest frequency of the band on, of two polarisations: complex [2, N]."""
    return RNG.normal(size=(2, N, 2)) @ [1, 1j]


def recorded(path: Path, sky: np.ndarray, is_complex: bool, late: int = 0, rate_hz: float | None = None) -> Path:
    """Writes DADA of one antenna, without its first ``late`` microseconds."""
    if is_complex:
        x = np.fft.ifft(np.roll(sky, -N // 2, axis=1)) * N
        data = np.stack([x.real, x.imag], axis=-1)[:, late:]
    else:
        data = np.fft.irfft(np.pad(sky, ((0, 0), (0, 1))), 2 * N)[:, 2 * late :, np.newaxis] * 2 * N
    data = np.rint(18 * data / data.std() + RNG.normal(0, 6, data.shape)).clip(-127, 127)
    start = BEGIN + timedelta(microseconds=late)
    utc = f"{start:%Y-%m-%d-%H:%M:%S}.{start.microsecond:06}"
    rate_hz = rate_hz or BAND_HZ * (1 if is_complex else 2)
    said = {"TSAMP": 1e6 / rate_hz, "FREQ": 1400, "BW": BAND_HZ / 1e6, "UTC_START": utc, "TELESCOPE": path.stem}
    makers.dada(path, data.transpose(1, 0, 2)[:, np.newaxis], said)
    return path


@pytest.mark.parametrize("kinds", [(False, True), (True, False), (True, False, True)])
@pytest.mark.parametrize("chunk", [None, 5000])
@pytest.mark.parametrize("late", [0, 4321])
def test_they_have_the_phases_of_the_sky(tmp_path: Path, kinds: tuple[bool, ...], chunk: int | None, late: int) -> None:
    """Each antenna gets the waves so many seconds later than the first: V_ij turns by 2 pi f tau, f on the sky."""
    sky, delays_us = lines(), (0.0, 1.3, -0.7)
    hz = 1400e6 + (np.arange(N) / N - 0.5) * BAND_HZ
    paths = []
    for number, (is_complex, delay) in enumerate(zip(kinds, delays_us, strict=False)):
        turned = sky * np.exp(-2j * np.pi * hz * delay * 1e-6)
        paths.append(recorded(tmp_path / f"m{number}.dada", turned, is_complex, late if number == 1 else 0))
    bands = Bands(C, TAPS, spectra_per_heap=HEAP)
    made = correlate(paths, bands, accumulate=3, running=Running(device="host", chunk=chunk))
    rate_hz = BAND_HZ * (1 if kinds[0] else 2)
    assert made.info.dump_samples == 3 * HEAP * C * rate_hz // BAND_HZ
    assert made.timestamps[0] == 0 and (np.diff(made.timestamps) == made.info.dump_samples).all()
    n_dumps = N // (3 * HEAP * C)
    assert n_dumps - 1 <= len(made.timestamps) <= n_dumps
    ends_s = np.array([(time + made.info.dump_samples) / rate_hz for time in made.timestamps.tolist()])
    whole = made.present.all(axis=1)
    assert whole.sum() >= n_dumps - 2 - (late > 0) * 7 and not whole[ends_s < late * 1e-6].any()
    v = made.visibilities[whole].astype(float).sum(axis=0) @ [1, 1j]  # [C, n_baselines, 4]
    channels_hz = made.info.centre_frequency_hz + (np.arange(C) - C // 2) * made.info.channel_width_hz
    j, i = np.tril_indices(len(kinds))
    autos = [k for k in range(len(j)) if i[k] == j[k]]
    for k in (k for k in range(len(j)) if i[k] != j[k]):
        tau = (delays_us[j[k]] - delays_us[i[k]]) * 1e-6
        for product in (0, 3):
            powers = np.sqrt(v[:, autos[i[k]], product].real * v[:, autos[j[k]], product].real)
            found = (v[:, k, product] / powers * np.exp(-2j * np.pi * channels_hz * tau))[2:-2]
            assert np.abs(found).min() > 0.75
            assert np.degrees(np.abs(np.angle(found))).max() < 4


def test_another_band_is_refused(tmp_path: Path) -> None:
    sky = lines()
    paths = [
        recorded(tmp_path / "a.dada", sky, False),
        recorded(tmp_path / "b.dada", sky, True, rate_hz=2 * BAND_HZ),
    ]
    why = "a has 2000000.0 Hz, b has 2000000.0 Hz; real samples of a band have twice the rate of complex ones"
    with refused("antennas must have the same sample rate to be correlated", why):
        correlate(paths, Bands(C), accumulate=2, running=Running(device="host"))


def test_an_odd_number_of_channels_is_refused(tmp_path: Path) -> None:
    paths = [recorded(tmp_path / f"{n}.dada", lines(), n == 1) for n in range(2)]
    with refused("n_channels=15: real samples beside complex ones need an even number of channels"):
        correlate(paths, Bands(15), accumulate=2, running=Running(device="host"))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("at", [123456, 123457])
def test_a_phase_centre_gives_both_one_delay_in_seconds(first: int, at: int) -> None:
    place = (5109360.0, 2006852.5, -3238948.0)
    of_both = [
        SampleInfo(8, 2, 2e6, 64, 4_000_000, at, "real", place, 1.4e9, Fraction(1_700_000_000)),
        SampleInfo(
            COMPLEX_BITS, 2, 1e6, 64, 2_000_000, (at + 1) // 2, "complex", place, 1.4e9, Fraction(1_700_000_000)
        ),
    ]
    far = SampleInfo(
        8, 2, 2e6, 64, 4_000_000, at, "far", (5109360.0, 2016852.5, -3238948.0), 1.4e9, Fraction(17 * 10**8)
    )
    infos = [*(of_both if first == 0 else of_both[::-1]), far]
    middle = 256.0 * infos[0].sample_rate_hz / 2e6
    models = stopping_models(infos, PhaseCentre(-40.0, 50.0), middle, lambda line: None)
    found = []
    for info, model in zip(infos[:2], models, strict=False):
        pieces = [piece for piece in model.pieces if abs(piece.start) < 1e15]
        rate_hz = info.sample_rate_hz
        found.append([(each.start / rate_hz, each.delay / rate_hz, each.rate, each.phase) for each in pieces])
    a, b = np.array(found)
    assert a.shape[1] == 4 and np.abs(a[:, 1]).min() > 1e-6
    assert np.array_equal(a[:, 0], b[:, 0])
    assert np.allclose(a[:, 1:3], b[:, 1:3], rtol=1e-12, atol=0)
    assert np.abs(np.exp(1j * (a[:, 3] - b[:, 3])) - 1).max() < 1e-6
