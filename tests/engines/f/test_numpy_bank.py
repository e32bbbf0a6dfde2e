"""The filter bank of NumPy makes the voltages of the plain formula in float64, for any samples, bits and delays."""

import numpy as np
import pytest

from autotune.core.packed_samples import unpack_samples
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.band import Band
from autotune.engines.f.sample_buffers import SampleBuffers
from autotune.engines.f.voltage_buffers import BandSettings, Voltages
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.backend import Event
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.machine.host_samples import sum_of_squares, unpack_floats
from autotune.engines.run.bay import Bay
from autotune.engines.streams.samples import COMPLEX_BITS, SampleInfo, Samples
from autotune.engines.streams.voltages import REAL_HIGH, REAL_LOW

pytestmark = pytest.mark.quick

PACKET, N_PACKETS = 256, 60
NEAR = 2e-3  # of a half: float32 may round otherwise there


def spectra_of(
    samples: np.ndarray, settings: BandSettings, delays: DelayModel, origin: int, time: int, is_complex: bool
) -> np.ndarray:
    """One spectrum in complex128: [C]; samples: [n] from ``origin`` on."""
    taps, step = settings.weights.shape
    coarse, delayed = delays.coarse_at(time), delays.at(time, 1, step)
    fine, phase = float(delayed.fine[0]), float(delayed.phase[0])
    window = samples[time - coarse - origin :][: taps * step].reshape(taps, step)
    weights = settings.weights.astype(np.float64).copy()
    k = np.arange(settings.n_channels) - settings.n_channels / 2
    if is_complex:
        weights.reshape(-1)[1::2] *= -1
        return np.fft.fft((window * weights).sum(axis=0)) * np.exp(1j * (phase - 2 * np.pi * fine * k / step))
    phase += np.pi / 2 * (coarse & 3)
    spectrum = np.fft.rfft((window * weights).sum(axis=0))[: settings.n_channels]
    return np.asarray(spectrum * np.exp(1j * (phase - 2 * np.pi * fine * k / step)))


@pytest.mark.parametrize("seed", range(8))
def test_voltages_are_those_of_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    is_complex, n_pols, bits = seed % 4 == 3, int(rng.integers(1, 3)), int(rng.choice([4, 8]))
    sample_bits = COMPLEX_BITS if is_complex else int(rng.choice([2, 3, 4, 8, 10, 12, 16]))
    c, taps, heap = int(rng.choice([20, 48, 64, 130])), int(rng.integers(1, 6)), int(rng.choice([3, 8, 20]))
    step = c if is_complex else 2 * c
    info = SampleInfo(sample_bits, n_pols, 1e6, PACKET)
    weights = rng.uniform(-1, 1, (taps, step)).astype(np.float32)
    nibbles = REAL_HIGH if bits == 4 and seed % 2 else REAL_LOW
    settings = BandSettings(c, weights, bits, heap, int(rng.integers(1, 5)), 200, nibbles=nibbles)
    origin = (1 << 40) + int(rng.integers(0, 1000)) * 8
    if is_complex:
        packed = rng.normal(size=(n_pols, N_PACKETS * PACKET, 2)).astype(np.float32).view(np.complex64)[..., 0]
        samples = packed.astype(np.complex128)
        rms = 1.4
    else:
        packed = rng.integers(0, 256, (n_pols, N_PACKETS * PACKET * sample_bits // 8), dtype=np.uint8)
        samples = np.array([unpack_samples(row, sample_bits, 0, N_PACKETS * PACKET) for row in packed])
        rms = 2**sample_bits / 12**0.5
    strength = rms * float((weights.astype(float) ** 2).sum()) ** 0.5 / (40 if bits == 8 else 3)
    gains = Gains(c, n_pols, (rng.uniform(0.5, 1, (c, n_pols)) / strength).astype(np.complex64))
    later = origin + 7000
    gains.set(later, 1j / strength)
    delays = [
        DelayModel(Piece(origin, rng.uniform(-30, 30), rng.uniform(-3e-3, 3e-3), 0.3, 1e-5), Piece(origin + 9000, 4.0))
        for _ in range(n_pols)
    ]
    received = np.ones((n_pols, N_PACKETS), bool)
    received[-1, 30] = False

    backend = HostBackend()
    bay = Bay(backend, Kernels(backend, lambda line: None))
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def deliver(made: Voltages) -> tuple[Event, ...]:
        for number in np.flatnonzero(made.heaps).tolist():
            found[made.time + number * heap * step] = made.voltages[number, 0].copy(), made.saturated[number, 0].copy()
        return ()

    band = Band(bay, info, settings, delays=delays, gains=gains, deliver=deliver)
    feed(bay, info, band, packed, received, origin)
    n_other, n_all, most = 0, 0, 2 ** (bits - 1) - 1
    n_compared, lost = 0, origin + 30 * PACKET
    for time, (voltages, saturated) in found.items():
        if lost - (heap + taps) * step - 100 < time < lost + PACKET + 100:
            continue  # a spectrum of it may lack samples
        n_compared += 1
        for pol in range(n_pols):
            times = range(time, time + heap * step, step)
            spectra = np.array([spectra_of(samples[pol], settings, delays[pol], origin, t, is_complex) for t in times])
            expected = (spectra * gains.at(time)[1][:, pol]).T  # [C, heap]
            parts = np.stack([expected.real, expected.imag], axis=-1)
            got = parts_of(voltages[:, :, pol], bits, nibbles)
            clipped = np.clip(np.rint(parts), -most, most)
            is_near = np.abs(np.abs(parts - np.floor(parts)) - 0.5) < NEAR * max(1, most / 40)
            assert np.array_equal(got[~is_near], clipped[~is_near]) and np.abs(got - clipped).max() <= 1
            n_other, n_all = n_other + np.count_nonzero(got != clipped), n_all + got.size
            beyond = (np.abs(np.rint(parts)) > most).any(axis=-1)
            assert abs(int(saturated[pol]) - np.count_nonzero(beyond)) <= np.count_nonzero(is_near.any(axis=-1))
    assert n_other <= 1e-3 * n_all and n_compared >= N_PACKETS * PACKET // (heap * step) // 4


def parts_of(voltages: np.ndarray, bits: int, nibbles: str) -> np.ndarray:
    """Real and imaginary parts: int [.., 2]."""
    if bits == 8:
        return voltages.astype(int)
    low, high = (voltages << 4).astype(np.int8) >> 4, voltages >> 4
    return np.stack([low, high] if nibbles == REAL_LOW else [high, low], axis=-1).astype(int)


def feed(bay: Bay, info: SampleInfo, band: Band, packed: np.ndarray, received: np.ndarray, origin: int) -> None:
    """Gives a band all samples in chunks of 25 packets."""
    buffers, width = SampleBuffers(bay, info, band.shape.head, 25 * PACKET, 2), packed.shape[1] // N_PACKETS
    for at in range(0, N_PACKETS, 25):
        chunk = np.ascontiguousarray(packed[:, at * width : (at + 25) * width])
        buffers.used(band.take(buffers.put(chunk, Samples(origin + at * PACKET, received[:, at : at + 25]))))
    band.finish()


@pytest.mark.parametrize("bits", range(2, 17))
def test_samples_are_unpacked_from_anywhere(bits: int) -> None:
    rng = np.random.default_rng(bits)
    row = rng.integers(0, 256, 997, dtype=np.uint8)
    for n in (1, 7, 8, 1000 // bits, *rng.integers(1, 7900 // bits, 6).tolist()):
        first = int(rng.integers(0, row.size * 8 // bits - n + 1))
        out = np.full(n, np.nan, np.float32)
        unpack_floats(row, bits, first, out)
        expected = unpack_samples(row, bits, first, n)
        assert np.array_equal(out, expected)
        assert sum_of_squares(out, bits) == int(expected @ expected)


def test_the_power_of_the_largest_samples_is_exact() -> None:
    for bits in (2, 8, 9, 12, 16):
        largest = np.full((3, 4096 * 3), -(2.0 ** (bits - 1)), np.float32)
        largest[0, 0] += 1
        assert sum_of_squares(largest, bits) == int((largest.astype(np.int64) ** 2).sum())
