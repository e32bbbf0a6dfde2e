"""A band through the kernels on host: the same voltages however a stream is cut, and those of theory."""

from collections.abc import Sequence
from math import pi

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.band import Band
from autotune.engines.f.filters import prototype
from autotune.engines.f.sample_buffers import SampleBuffers
from autotune.engines.f.voltage_buffers import BandSettings, Voltages
from autotune.engines.kernels.choice import AUTO, CHAIN, CHANNELISE, Kernels
from autotune.engines.machine.backend import Event
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.bay import Bay
from autotune.engines.streams.samples import SampleInfo, Samples
from autotune.engines.streams.voltages import REAL_HIGH, REAL_LOW

from ...sky import quantised
from ..stand_ins import nibbles_exchanged

C, TAPS, HEAP, PACKET = 64, 4, 8, 256
L = 2 * C
WEIGHTS = prototype(C, TAPS)
SUM = float(WEIGHTS.sum(dtype=float))
BANKS = pytest.mark.parametrize("bank", [AUTO, CHAIN, CHANNELISE])
Heap = tuple[np.ndarray, ...]  # int8 [C, HEAP, n_pols, 2], uint32 [n_pols], bool [HEAP, n_pols]: which came


def heaps_of(
    packed: np.ndarray,
    received: np.ndarray,
    origin: int,
    delays: Sequence[DelayModel],
    gains: Gains,
    cuts: Sequence[int],
    settings: BandSettings,
    info: SampleInfo,
    bank: str = AUTO,
) -> dict[int, Heap]:
    backend, found = HostBackend(), {}
    bay = Bay(backend, Kernels(backend, lambda line: None, filter_bank=bank))

    def deliver(made: Voltages) -> tuple[Event, ...]:
        for heap in np.flatnonzero(made.heaps).tolist():
            time = made.time + heap * HEAP * settings.shape(info).step
            found[time] = tuple(
                each.copy() for each in (made.voltages[heap, 0], made.saturated[heap, 0], made.present[heap])
            )
        return ()

    band = Band(bay, info, settings, delays=delays, gains=gains, deliver=deliver)
    buffers = SampleBuffers(bay, info, band.shape.head, max(cuts) * PACKET, 2)
    at, width = 0, PACKET if info.is_complex else PACKET * info.sample_bits // 8
    for n in cuts:
        some = slice(at, at + n)
        chunk = np.ascontiguousarray(packed[:, at * width : (at + n) * width])
        lost = np.repeat(~received[:, some], width, axis=1)
        chunk[lost] = 0xA5  # what a buffer held before
        if n:
            buffers.used(band.take(buffers.put(chunk, Samples(origin + at * PACKET, received[:, some]))))
        at += n
    band.finish()
    return found


def random_cuts(rng: np.random.Generator, total: int, most: int) -> list[int]:
    cuts = []
    while total:
        cuts.append(int(rng.integers(1, min(most, total) + 1)))
        total -= cuts[-1]
    return cuts


@BANKS
@pytest.mark.parametrize("bits", [8, 4])
def test_voltages_do_not_depend_on_how_a_stream_is_cut(bits: int, bank: str) -> None:
    rng = np.random.default_rng(bits)
    n_packets, origin = 96, (1 << 44) + 3
    packed = rng.integers(0, 256, (2, n_packets * PACKET * 10 // 8), dtype=np.uint8)
    received = np.ones((2, n_packets), bool)
    received[1, 40] = False
    received[:, 70:73] = False

    def made(cuts: Sequence[int], received: np.ndarray = received) -> dict[int, Heap]:
        delays = [
            DelayModel(
                Piece(origin - 5, 20.3 + pol, 2e-4, 0.1, 1e-5),
                Piece(origin + 12000, 20 - 7.6 * pol, -3e-4),
                Piece(origin + 17003, -31.5),
            )
            for pol in range(2)
        ]
        scale = 1.0 if bits == 8 else 0.06
        gains = Gains(C, 2, scale * (0.08 + 0.01j))
        gains.set(origin + 9000, scale * rng_gains)
        settings = BandSettings(C, WEIGHTS, bits, HEAP, heaps_per_batch=4, max_delay_diff=200)
        return heaps_of(packed, received, origin, delays, gains, cuts, settings, SampleInfo(10, 2, 1e6, PACKET), bank)

    rng_gains = (0.05 * rng.standard_normal((C, 2)) + 0.03j).astype(np.complex64)
    whole, in_chunks = made([n_packets]), made(random_cuts(rng, n_packets, 9))
    assert whole.keys() == in_chunks.keys() and len(whole) >= 14
    for time, heap in whole.items():
        assert all(np.array_equal(a, b) for a, b in zip(heap, in_chunks[time], strict=True))
    lossless = made([n_packets], np.ones_like(received))
    assert all(there.all() for _, _, there in lossless.values())
    for time, (voltages, _, there) in whole.items():
        assert np.array_equal(voltages, np.where(there[:, :, np.newaxis] if bits == 8 else there, lossless[time][0], 0))
    for pol, lost in enumerate(([70, 71, 72], [40, 70, 71, 72])):
        n = sum(np.count_nonzero(~there[:, pol]) for _, _, there in whole.values())
        n += HEAP * len(lossless.keys() - whole.keys())
        assert len(lost) * PACKET / L < n <= len(lost) * PACKET / L + 2 * (TAPS + 1) + 1


@BANKS
def test_the_real_part_may_come_in_the_high_nibble(bank: str) -> None:
    rng, n_packets = np.random.default_rng(6), 40
    packed = rng.integers(0, 256, (2, n_packets * PACKET * 10 // 8), dtype=np.uint8)
    received = np.ones((2, n_packets), bool)
    received[1, 20] = False

    def made(nibbles: str) -> dict[int, Heap]:
        settings = BandSettings(C, WEIGHTS, 4, HEAP, 3, 200, nibbles=nibbles)
        info, delays = SampleInfo(10, 2, 1e6, PACKET), [DelayModel(Piece(0, 3.7 * pol)) for pol in range(2)]
        return heaps_of(packed, received, 0, delays, Gains(C, 2, 0.01), [n_packets], settings, info, bank)

    low, high = made(REAL_LOW), made(REAL_HIGH)
    assert low.keys() == high.keys() and len(low) > 4 and any(saturated.any() for _, saturated, _ in low.values())
    assert any(there.any(axis=0).all() and not there.all() for _, _, there in low.values())
    for time, (voltages, saturated, _) in low.items():
        assert np.array_equal(high[time][0], nibbles_exchanged(voltages)) and (voltages != high[time][0]).any()
        assert np.array_equal(high[time][1], saturated)


@BANKS
@pytest.mark.parametrize("delay", [0.0, 0.5, 3.0, 17.25, 1023.75, 8192.5, -6.4])
@pytest.mark.parametrize(("channel", "late"), [(5, 0), (20, 3), (20, 16)])
def test_a_tone_has_the_amplitude_and_phase_of_theory(delay: float, channel: int, late: int, bank: str) -> None:
    """``late``: the stream starts at any sample: at any bit of a byte, and at any byte of what copies align."""
    origin, n_packets, cycles, phase, phase_rate, rate = (1 << 40) + late, 128, 0.15, 0.4, 3e-6, 1e-7
    times = np.arange(n_packets * PACKET)
    tone = 400 * np.cos(2 * pi * (channel / L * times + cycles))
    packed = quantised_rows([tone, tone])
    models = [DelayModel(Piece(origin, delay, rate, phase, phase_rate)), DelayModel(Piece(origin, 0.0))]
    gain = 100 / (400 / 2 * SUM)
    settings = BandSettings(C, WEIGHTS, 8, HEAP, heaps_per_batch=2, max_delay_diff=9000)
    received = np.ones((2, n_packets), bool)
    info = SampleInfo(10, 2, 1e6, PACKET)
    found = heaps_of(packed, received, origin, models, Gains(C, 2, gain), [50, 1, 77], settings, info, bank)
    assert len(found) >= (n_packets * PACKET - 8300) // (HEAP * L) - 2
    for time, (voltages, _, _) in found.items():
        spectra = time + L * np.arange(HEAP) - origin
        d = np.array([delay + rate * spectra, 0 * spectra])
        turns = np.array([phase + phase_rate * spectra, 0 * spectra])
        # The centre channel, a quarter of the sampling rate, keeps its phase; others are turned by their distance.
        expected = 100 * np.exp(1j * (2 * pi * (channel / L * spectra + cycles - (channel / L - 1 / 4) * d) + turns))
        got = voltages[channel, :, :, 0].T + 1j * voltages[channel, :, :, 1].T.astype(float)
        assert np.abs(np.abs(got) - 100).max() < 3
        assert np.abs(np.angle(got / expected)).max() < 0.02
        beside = np.delete(voltages, [channel - 1, channel, channel + 1], axis=0)
        assert np.abs(beside).max() <= 1


def test_what_does_not_fit_is_told() -> None:
    backend = HostBackend()
    bay, info = Bay(backend, Kernels(backend, lambda line: None)), SampleInfo(10, 2, 1e6, PACKET)
    gains = Gains(C, 2)
    wrong = BandSettings(C, prototype(C // 2, TAPS), 8, HEAP)
    with pytest.raises(UsageError, match=r"weights have the shape \[4, 64\]; they must be \[taps, 128\]"):
        Band(bay, info, wrong, delays=[DelayModel()] * 2, gains=gains, deliver=lambda made: ())
    with pytest.raises(UsageError, match="1 delay models were given; there are 2 polarisations"):
        Band(bay, info, BandSettings(C, WEIGHTS), delays=[DelayModel()], gains=gains, deliver=lambda made: ())
    with pytest.raises(UsageError, match=r"gains have the shape \[3, 2\], must be \[64, 2\]"):
        gains.set(0, np.ones((3, 2)))
    with pytest.raises(UsageError, match="gains must be finite"):
        gains.set(0, np.nan)


def quantised_rows(streams: list[np.ndarray]) -> np.ndarray:
    """uint8 [n_pols, n_bytes]: samples of 10 bits, packed."""
    return packed_samples(quantised(streams, 10), 10)


def packed_samples(samples: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(bits - 1, -1, -1)
    return np.packbits((samples[..., np.newaxis] >> shifts & 1).astype(np.uint8).reshape(len(samples), -1), axis=1)
