"""A narrow band through the kernels on host: the same voltages however a stream is cut, and those of theory."""

from collections.abc import Sequence
from fractions import Fraction
from math import pi

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import voltage_info
from autotune.engines.f.filters import low_pass, prototype
from autotune.engines.f.narrow_band import NarrowBand, NarrowSettings
from autotune.engines.f.sample_buffers import SampleBuffers
from autotune.engines.f.voltage_buffers import BandSettings, Voltages
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.backend import Event
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.bay import Bay
from autotune.engines.streams.samples import SampleInfo, Samples

from .test_band import BANKS, quantised_rows, random_cuts

C, TAPS, HEAP, PACKET, D, CENTRE = 64, 4, 2, 256, 8, 0.21
WEIGHTS, LOW_PASS = prototype(C, TAPS, is_complex=True), low_pass(8 * D, D)
ORIGIN, N_PACKETS = (1 << 40) + 64, 160
BAND = BandSettings(C, WEIGHTS, 8, HEAP, heaps_per_batch=2, max_delay_diff=1000)
SETTINGS = NarrowSettings(BAND, LOW_PASS, CENTRE, D, outputs_per_batch=64)
INFO = SampleInfo(10, 2, 1e6, PACKET, centre_frequency_hz=1e9)


def heaps_of(
    packed: np.ndarray, received: np.ndarray, delays: Sequence[DelayModel], gains: Gains, cuts: Sequence[int], bank: str
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    backend, found = HostBackend(), {}

    def deliver(made: Voltages) -> tuple[Event, ...]:
        for heap in np.flatnonzero(made.heaps).tolist():
            found[made.time + heap * HEAP * C * D] = made.voltages[heap, 0].copy(), made.present[heap].copy()
        return ()

    bay, most = Bay(backend, Kernels(backend, lambda line: None, filter_bank=bank)), max(cuts) * PACKET
    band = NarrowBand(bay, INFO, SETTINGS, delays=delays, gains=gains, deliver=deliver, chunk=most)
    buffers = SampleBuffers(bay, INFO, band.head, most, 2)
    at, width = 0, PACKET * 10 // 8
    for n in cuts:
        chunk = np.ascontiguousarray(packed[:, at * width : (at + n) * width])
        chunk[np.repeat(~received[:, at : at + n], width, axis=1)] = 0xA5  # what a buffer held before
        samples = Samples(ORIGIN + at * PACKET, received[:, at : at + n])
        buffers.used(band.take(buffers.put(chunk if samples.received.any() else None, samples)))
        at += n
    band.finish()
    return found


@BANKS
def test_voltages_do_not_depend_on_how_a_stream_is_cut(bank: str) -> None:
    rng = np.random.default_rng(5)
    packed = rng.integers(0, 256, (2, N_PACKETS * PACKET * 10 // 8), dtype=np.uint8)
    received = np.ones((2, N_PACKETS), bool)
    received[1, 40] = False
    received[:, 90:97] = False

    def made(cuts: Sequence[int], received: np.ndarray = received) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        delays = [
            DelayModel(Piece(ORIGIN - 5, 20.3 + pol, 2e-4, 0.1, 1e-5), Piece(ORIGIN + 22000, 90 - 7.6 * pol, -3e-4))
            for pol in range(2)
        ]
        gains = Gains(C, 2, 0.3 + 0.01j)
        gains.set(ORIGIN + 9000, 0.2)
        return heaps_of(packed, received, delays, gains, cuts, bank)

    whole = made([N_PACKETS])
    assert len(whole) >= 15
    for most in (5, 30):
        in_chunks = made(random_cuts(rng, N_PACKETS, most))
        assert whole.keys() == in_chunks.keys()
        for time, heap in whole.items():
            assert all(np.array_equal(a, b) for a, b in zip(heap, in_chunks[time], strict=True))
    lossless = made([N_PACKETS], np.ones_like(received))
    for time, (voltages, there) in whole.items():
        assert np.array_equal(voltages, np.where(there[..., np.newaxis], lossless[time][0], 0))
    begins = [
        time + C * D * s for time, (_, there) in whole.items() for s in range(HEAP) if there[s].tolist() == [1, 0]
    ]
    assert begins and all(ORIGIN + 40 * PACKET - (TAPS + 2) * C * D < begin < ORIGIN + 42 * PACKET for begin in begins)


@BANKS
@pytest.mark.parametrize("delay", [0.0, 3.0, 43.7, 900.25])
@pytest.mark.parametrize("channel", [20, 44])
def test_a_tone_has_the_amplitude_and_phase_of_theory(delay: float, channel: int, bank: str) -> None:
    cycles, phase, phase_rate, rate = 0.15, 0.4, 3e-6, 1e-7
    beside = (channel - C / 2) / (C * D)  # cycles a sample from the centre
    times = np.arange(N_PACKETS * PACKET)
    tone = 400 * np.cos(2 * pi * ((CENTRE + beside) * times + cycles))
    packed = quantised_rows([tone, tone])
    delays = [DelayModel(Piece(ORIGIN, delay, rate, phase, phase_rate)), DelayModel(Piece(ORIGIN, 0.0))]
    transfer = np.sum(LOW_PASS * np.exp(2j * pi * beside * np.arange(LOW_PASS.size)))
    strength = 200 * abs(transfer) * float(WEIGHTS.sum(dtype=float))
    found = heaps_of(packed, np.ones((2, N_PACKETS), bool), delays, Gains(C, 2, 100 / strength), [70, 1, 60, 29], bank)
    assert len(found) >= 30
    for time, (voltages, _) in found.items():
        spectra = time + C * D * np.arange(HEAP) - ORIGIN
        d, turns = (
            np.array([delay + rate * spectra, 0 * spectra]),
            np.array([phase + phase_rate * spectra, 0 * spectra]),
        )
        # The mixer's phase counts from time 0, the tone's from the origin. The centre keeps its phase under a delay.
        cycles_left = beside * (spectra - d) + cycles - float(Fraction(CENTRE) * ORIGIN % 1)
        expected = 2 * pi * cycles_left + turns + np.angle(transfer)
        got = voltages[channel, :, :, 0].T + 1j * voltages[channel, :, :, 1].T.astype(float)
        assert np.abs(np.abs(got) - 100).max() < 3
        assert np.abs(np.angle(got * np.exp(-1j * expected))).max() < 0.02


def test_what_does_not_fit_is_told() -> None:
    backend = HostBackend()
    bay, gains = Bay(backend, Kernels(backend, lambda line: None)), Gains(C, 2)

    def band(info: SampleInfo, settings: NarrowSettings) -> NarrowBand:
        models = [DelayModel()] * 2
        return NarrowBand(bay, info, settings, delays=models, gains=gains, deliver=lambda made: (), chunk=4096)

    with pytest.raises(UsageError, match="outputs_per_batch=3 times decimation=8 samples of 10 bits are not whole"):
        band(INFO, NarrowSettings(BAND, LOW_PASS, CENTRE, D, outputs_per_batch=3))
    with pytest.raises(UsageError, match="a narrow band is cut out of real samples"):
        band(SampleInfo(64, 2, 1e6, PACKET), SETTINGS)
    info = voltage_info(INFO, SETTINGS)
    assert (info.step, info.channel_width_hz) == (C * D, 1e6 / (C * D))
    assert info.centre_frequency_hz == pytest.approx(1e9 - 0.04e6)
