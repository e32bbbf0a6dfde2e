"""Complex samples: frequency 0 lies in channel C / 2, for labels, delays and gains, in both filter banks."""

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.jobs import Bands, Running, channelise, correlate

C, HEAP, N, RATE_HZ, CENTRE_HZ = 64, 32, 1 << 15, 3e6, 1.42e9
BANKS = ["chain", "channelise"]
RNG = np.random.default_rng(20)
HEADER = {"sample_rate_hz": RATE_HZ, "centre_frequency_hz": CENTRE_HZ}


def noise(*shape: int) -> np.ndarray:
    return RNG.normal(size=(*shape, 2)).view(complex)[..., 0]


@pytest.mark.parametrize("bank", BANKS)
@pytest.mark.parametrize("frequency", [0.0, *RNG.uniform(-0.49, 0.49, 3).tolist()])
def test_a_tone_lies_where_its_label_says(bank: str, frequency: float) -> None:
    x = (60 * np.exp(2j * np.pi * frequency * np.arange(N)) + noise(2, N)).astype(np.complex64)
    made = channelise(
        x, Bands(C, 4, spectra_per_heap=HEAP), header=HEADER, running=Running(filter_bank=bank, device="host")
    )
    power = (made.voltages.astype(float) ** 2).sum((0, 2, 3, 4))
    info = made.bands[0].info
    assert info.centre_frequency_hz == CENTRE_HZ and info.channel_width_hz == RATE_HZ / C
    labelled = CENTRE_HZ + (int(power.argmax()) - C / 2) * info.channel_width_hz
    assert abs(labelled - (CENTRE_HZ + frequency * RATE_HZ)) <= info.channel_width_hz / 2 * 1.001


@pytest.mark.parametrize("bank", BANKS)
@pytest.mark.parametrize("delay", RNG.uniform(-40, 40, 2).tolist())
def test_a_delay_is_one_at_all_frequencies(bank: str, delay: float) -> None:
    sky = noise(2, N)
    late = np.fft.ifft(np.fft.fft(sky) * np.exp(-2j * np.pi * np.fft.fftfreq(N) * delay))
    antennas = [(20 * (s + 0.1 * noise(2, N))).astype(np.complex64) for s in (sky, late)]
    delays = {"m000": [DelayModel()] * 2, "m001": [DelayModel(Piece(-N, -delay))] * 2}
    bands = Bands(C, 4, spectra_per_heap=HEAP, delays=delays)
    made = correlate(antennas, bands, accumulate=3, header=HEADER, running=Running(filter_bank=bank, device="host"))
    whole = made.present.all(axis=1)
    assert whole.sum() >= N // (HEAP * C * 3) - 1
    v = made.visibilities[whole, 1:, 1, 0].astype(float).sum(axis=0)
    phases = np.degrees(np.angle(v[:, 0] + 1j * v[:, 1]))
    assert np.abs(phases).max() < 2.5


@pytest.mark.parametrize("bank", BANKS)
def test_gains_are_in_the_order_of_labels(bank: str) -> None:
    gains = np.zeros(C, np.complex64)
    gains[C // 2 + 9] = 0.5
    made = channelise(
        (9 * noise(2, N)).astype(np.complex64),
        Bands(C, 4, spectra_per_heap=HEAP, gains=gains),
        header=HEADER,
        running=Running(filter_bank=bank, device="host"),
    )
    power = (made.voltages.astype(float) ** 2).sum((0, 2, 3, 4))
    assert np.flatnonzero(power).tolist() == [C // 2 + 9]
