"""What a chain of kernels is tested with: streams of samples, filters, stages, and the spectra that theory expects.

Frequencies are in cycles a sample, phases of tones in cycles. A real tone is two lines, complex exponentials of
opposite frequency; every stage of a chain is linear and makes lines of lines, exactly.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from autotune.kernels.channelise import Channelise
from autotune.kernels.ddc import Ddc
from autotune.kernels.pfb_fir import PfbFir
from autotune.kernels.postproc import Postproc

from autotune import Kernel
from autotune.devices import Target
from autotune.rendering.render import render
from autotune.trial.case import POISONS, CaseInMemory

from .kernels.common import packed_bits, session_on

CHANNELISE, DDC, PFB_FIR, POSTPROC = Channelise(), Ddc(), PfbFir(), Postproc()
Outputs = dict[str, np.ndarray]

ROUNDOFF = 2.0**-24  # of a float32 operation, relative


class Figure(NamedTuple):
    """Something measured, and how far from theory it may be."""

    what: str
    measured: float
    expected: float
    bound: float
    unit: str

    @property
    def holds(self) -> bool:
        return bool(abs(self.measured - self.expected) <= self.bound)

    @property
    def row(self) -> str:
        """Of a table; parts of a peak in decibels as well."""
        whole = self.measured == int(self.measured) and self.expected == int(self.expected)
        cells = [f"{value:.0f}" if whole else f"{value:.5g}" for value in (self.measured, self.expected)]
        if self.unit == "of the peak":
            both = zip(cells, (self.measured, self.expected), strict=True)
            cells = [f"{cell} ({decibels(value**2):.2f} dB)" if value else cell for cell, value in both]
        unit = f", {self.unit}" if self.unit else ""
        return f"| {self.what}{unit} | {' | '.join(cells)} | {self.bound:.{4 if whole else 2}g} |"


class Line(NamedTuple):
    """a e^(2 pi i f n)."""

    amplitude: complex
    frequency: float


@dataclass(frozen=True)
class Setting:
    """What an operator sets of two polarisations: offsets in samples, float32 [n_spectra, 2] delays and phases,
    complex64 [C, 2] gains.
    """

    offsets: tuple[int, int]
    delays: np.ndarray
    phases: np.ndarray
    gains: np.ndarray


@dataclass(frozen=True)
class Tone:
    """amplitude cos(2 pi (frequency n + cycles))."""

    frequency: float
    amplitude: float
    cycles: float = 0.0

    def delayed(self, delays: Sequence[float]) -> list["Tone"]:
        """Of several streams, each some samples late."""
        return [replace(self, cycles=self.cycles - self.frequency * delay) for delay in delays]

    def stream(self, n_samples: int) -> np.ndarray:
        """float64 [n_samples]."""
        return np.asarray(self.amplitude * turn(self.frequency * np.arange(n_samples) + self.cycles).real)

    @property
    def lines(self) -> tuple[Line, Line]:
        half = self.amplitude / 2 * complex(turn(self.cycles))
        return Line(half, self.frequency), Line(half.conjugate(), -self.frequency)


def turn(cycles: Any) -> np.ndarray:
    """e^(2 pi i cycles), element by element."""
    return np.asarray(np.exp(2j * np.pi * np.asarray(cycles, float)))


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.abs(values) ** 2)))


def decibels(ratio: float) -> float:
    """Of powers."""
    return float(10 * np.log10(ratio))


def noise(rng: np.random.Generator, n_samples: int, sigma: float, delays: Sequence[float]) -> np.ndarray:
    """Normal and white, the same for each of ``delays`` but that many samples late, round the end: float64
    [len(delays), n_samples].
    """
    spectrum = np.fft.rfft(rng.normal(0, sigma, n_samples))
    late = turn(-np.multiply.outer(np.asarray(delays, float), np.arange(spectrum.size) / n_samples))
    return np.asarray(np.fft.irfft(spectrum * late, n_samples))


def quantised(streams: Any, bits: int) -> np.ndarray:
    """The nearest integers, int64; they fit in ``bits``."""
    samples = np.asarray(np.rint(np.asarray(streams)), np.int64)
    assert np.abs(samples).max() < 2 ** (bits - 1)
    return samples


# ---------------------------------------------------------------------- filters and their theory
def transfer(weights: np.ndarray, frequencies: Any) -> np.ndarray:
    """W(f) = sum over n of w[n] e^(2 pi i f n): complex128, of the shape of ``frequencies``."""
    flat = weights.reshape(-1).astype(np.float64)
    return np.asarray(turn(np.multiply.outer(frequencies, np.arange(flat.size))) @ flat)


def mixed_down(lines: Sequence[Line], weights: np.ndarray, frequency: float, phase: float) -> list[Line]:
    """What ddc makes of lines, with weights [taps / D, D]: each f is moved by ``frequency``, filtered, and counted in
    outputs.
    """
    made = []
    for amplitude, f in lines:
        passed = complex(transfer(weights, f + frequency) * turn(phase))
        made.append(Line(amplitude * passed, (f + frequency) * weights.shape[1]))
    return made


def spectra_of(lines: Sequence[Line], weights: np.ndarray, offset: int, n_spectra: int, n_channels: int) -> np.ndarray:
    """X[s, k] = sum over lines of a e^(2 pi i f (o + s L)) W(f - k / L): complex128 [n_spectra, n_channels]."""
    step = weights.shape[1]
    starts, centres = offset + step * np.arange(n_spectra), np.arange(n_channels) / step
    each = [np.outer(a * turn(f * starts), transfer(weights, f - centres)) for a, f in lines]
    return np.asarray(np.sum(each, axis=0))


def turned(spectra: np.ndarray, given: Setting) -> np.ndarray:
    """v = X e^(i (phase - pi delay (k - C/2) / C)) gain: complex128 [n_spectra, 2, C], as X is."""
    n_channels = spectra.shape[-1]
    from_centre = (np.arange(n_channels) - n_channels / 2) / n_channels
    angles = given.phases.astype(float)[..., np.newaxis] - np.pi * np.multiply.outer(given.delays, from_centre)
    return np.asarray(spectra * np.exp(1j * angles) * given.gains.T)


def voltages_of(lines: Sequence[Sequence[Line]], weights: np.ndarray, given: Setting) -> np.ndarray:
    """What theory expects of the lines of two polarisations, before it is rounded: complex128 [n_spectra, 2, C]."""
    n_spectra, n_channels = len(given.delays), len(given.gains)
    pairs = zip(lines, given.offsets, strict=True)
    spectra = [spectra_of(of_pol, weights, offset, n_spectra, n_channels) for of_pol, offset in pairs]
    return turned(np.stack(spectra, axis=1), given)


def correlations(weights: np.ndarray) -> tuple[float, float]:
    """Of the spectra of white noise, that share samples: the sum of |rho| over the spectra around one, in its channel,
    and the sum of |rho|^2 over spectra and channels. A mean of N of them varies as one of N / sum independent ones.
    """
    w = weights.astype(float)
    taps, step = w.shape
    products = [w[: taps - a] * w[a:] for a in range(taps)]  # of samples a spectra apart: [taps - a, L]
    twice, energy = np.array([1.0] + [2.0] * (taps - 1)), np.sum(w**2)
    of_channel = [abs(np.sum(product)) for product in products]
    of_all = [step * np.sum(np.sum(product, axis=0) ** 2) for product in products]  # over channels, by Parseval
    return float(twice @ of_channel / energy), float(twice @ of_all / energy**2)


def bandwidth(weights: np.ndarray) -> float:
    """Rms distance from a channel's centre of the noise in it."""
    power = np.abs(np.fft.fft(weights.reshape(-1), 8 * weights.size)) ** 2
    return float(np.sqrt(np.sum(power * np.fft.fftfreq(power.size) ** 2) / np.sum(power)))


# ---------------------------------------------------------------------- roundings
def filter_rounding(weights: np.ndarray, largest: float) -> float:
    """How far an X may be off where float32 sums of ``taps`` products are made of samples of at most ``largest``."""
    return float(len(weights) * ROUNDOFF * largest * np.abs(weights).sum(dtype=float))


def fourier_rounding(step: int, norm: float) -> float:
    """How far an X may be off after an FFT of ``step`` points in float32, whose spectra have that Euclidean norm. Each
    of log2 L passes adds 7 roundings at most (N. J. Higham, Accuracy and Stability of Numerical Algorithms, th. 24.2).
    """
    return float(7 * np.log2(step) * ROUNDOFF * norm)


def turn_bound(theory: np.ndarray, bound: float) -> float:
    """Radians that voltages are turned by at most, if none is farther than ``bound`` from theory."""
    return float(np.arcsin(bound / np.abs(theory).min()))


# ---------------------------------------------------------------------- figures
def compared(
    v: np.ndarray, theory: np.ndarray, given: Setting, channel: int, bound: float, apart: float
) -> list[Figure]:
    """Of the voltages of a tone, each within ``bound`` of theory; ``apart``: the phase between the polarisations."""
    found, expected = v[..., channel], theory[..., channel]
    angle = turn_bound(expected, bound)
    strongest = np.argmax(np.sum(np.abs(v) ** 2, axis=0), axis=-1)
    plain = found / given.gains[channel].astype(complex)
    between = float(np.angle(np.sum(plain[:, 0] * plain[:, 1].conj())))
    figures = [
        Figure("largest difference from theory", float(np.abs(v - theory).max()), 0, bound, ""),
        Figure("largest difference in phase", float(np.abs(np.angle(found / expected)).max()), 0, angle, "rad"),
        Figure("between the polarisations", between, apart, 2 * angle, "rad"),
    ]
    for p in range(2):
        # The mean of squares whose roots are within the bound.
        limit = float(np.mean(2 * bound * np.abs(expected[:, p]) + bound**2))
        figures.append(Figure(f"strongest channel, pol {p}", float(strongest[p]), channel, 0, ""))
        figures.append(Figure(f"power, pol {p}", rms(found[:, p]) ** 2, rms(expected[:, p]) ** 2, limit, ""))
    return figures


# ---------------------------------------------------------------------- stages
def launched(target: Target, kernel: Kernel[Any], values: Mapping[str, Any], inputs: Mapping[str, Any]) -> Outputs:
    """One launch of the default configuration, in the build that is timed."""
    session = session_on(target)
    problem = kernel.problem_for(values, inputs)
    config = kernel.default_config(problem, target.device)
    binary = target.module.compile(render(kernel, problem, config), target.device, (session.timed_build,))
    function = session.load(binary, session.timed_build)
    with CaseInMemory(session, kernel, problem, inputs) as placed:
        placed.poison(POISONS[0])
        placed.launch(function, kernel.launch(problem, config))
        return placed.outputs()


def down_converted(target: Target, samples: np.ndarray, weights: np.ndarray, **numbers: float) -> np.ndarray:
    """ddc of samples of 10 bits: complex64 [n_pols, n_out]. ``weights``: [taps / decimation, decimation]."""
    values = {"taps": weights.size, "decimation": weights.shape[1], "sample_bits": 10, "n_samples": samples.shape[1]}
    inputs = {"samples": packed_bits(samples, 10), "weights": weights.reshape(-1), "mix_phase": 0.0, **numbers}
    return launched(target, DDC, values, inputs)["baseband"]


class Made(NamedTuple):
    """What a filter bank makes of two polarisations."""

    voltages: np.ndarray  # complex128 [n_spectra, 2, C], of whole parts
    saturated: np.ndarray  # uint32 [n_heaps, 2]
    total_power: np.ndarray  # uint64 [2]; of complex samples zeros


def by_chain(
    target: Target, samples: np.ndarray, weights: np.ndarray, given: Setting, heap: int
) -> Callable[[Setting], Made]:
    """Returns what makes voltages of the samples at the offsets of ``given``, for any delays, phases and gains, with
    pfb_fir, the FFT and postproc.
    """
    spectra, power = channelised(target, samples, weights, given.offsets, len(given.delays))
    return lambda other: Made(*postprocessed(target, spectra, other, heap), power)


def by_channelise(
    target: Target, samples: np.ndarray, weights: np.ndarray, given: Setting, heap: int
) -> Callable[[Setting], Made]:
    """Returns the same with channelise."""
    (taps, step), n_spectra, (n_channels, n_pols) = weights.shape, len(given.delays), given.gains.shape
    is_complex = np.iscomplexobj(samples)
    values = {"taps": taps, "n_channels": n_channels, "sample_bits": 64 if is_complex else 10, "spectra_per_heap": heap}
    values |= {"n_heaps": n_spectra // heap, "n_spectra": n_spectra, "n_samples": samples.shape[1]}
    inputs = {
        "voltages": np.zeros((n_spectra // heap, n_channels, heap, n_pols, 2), np.int8),
        "saturated": np.zeros((n_spectra // heap, n_pols), np.uint32),
        "samples": samples if is_complex else packed_bits(samples, 10),
        "weights": weights,
        "offsets": np.add.outer(step * np.arange(n_spectra), given.offsets),
    }
    power = np.zeros(n_pols, np.uint64)
    if not is_complex:
        inputs["total_power"] = power

    def made(other: Setting) -> Made:
        of_time = {name: getattr(other, name) for name in ("delays", "phases", "gains")}
        found = launched(target, CHANNELISE, values, inputs | of_time)
        return Made(in_time_order(found["voltages"]), found["saturated"], found.get("total_power", power))

    return made


def in_time_order(voltages: np.ndarray) -> np.ndarray:
    """complex128 [n_spectra, n_pols, C] of int8 [n_heaps, C, heap, n_pols, 2]."""
    parts = voltages.astype(float)
    in_order = (parts[..., 0] + 1j * parts[..., 1]).transpose(0, 2, 3, 1)
    return in_order.reshape(-1, *in_order.shape[2:])


def channelised(
    target: Target, samples: np.ndarray, weights: np.ndarray, offsets: Sequence[int], n_spectra: int, bits: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """pfb_fir and the FFT, in float32 on the device: complex64 [n_pols, n_spectra, C + 1], and total_power. Of complex
    samples [n_pols, n_spectra, C] and zeros.
    """
    taps, step = weights.shape
    inputs = {"weights": weights, "offsets": np.array(offsets), "total_power": np.zeros(len(samples), np.uint64)}
    values = {"taps": taps, "n_spectra": n_spectra, "n_samples": samples.shape[1]}
    if np.iscomplexobj(samples):
        values |= {"n_channels": step, "sample_bits": 64}
    else:
        values |= {"n_channels": step // 2, "sample_bits": bits}
        samples = np.concatenate([packed_bits(row, bits) for row in samples[:, np.newaxis]])  # in little memory
    found = launched(target, PFB_FIR, values, {**inputs, "samples": samples})
    return fourier(target, found["filtered"]), found.get("total_power", inputs["total_power"])


def fourier(target: Target, rows: np.ndarray) -> np.ndarray:
    """complex64, of the last axis; of L real numbers the L / 2 + 1 channels."""
    name = "rfft" if rows.dtype == np.float32 else "fft"
    if target.kind != "cuda":
        return np.asarray(getattr(np.fft, name)(rows))
    import cupy

    return np.asarray(cupy.asnumpy(getattr(cupy.fft, name)(cupy.asarray(rows))))


def postprocessed(target: Target, spectra: np.ndarray, given: Setting, heap: int) -> tuple[np.ndarray, np.ndarray]:
    """Of one receiver. voltages: complex128 [n_spectra, 2, C], of whole parts; saturated: [n_heaps, 2]."""
    found = quantised_voltages(target, spectra[np.newaxis], [given], heap)
    return in_time_order(found["voltages"][:, 0]), found["saturated"][:, 0]


def quantised_voltages(target: Target, spectra: np.ndarray, given: Sequence[Setting], heap: int, **how: Any) -> Outputs:
    """postproc of [n_receivers, 2, n_spectra, C + nyquist], each receiver as it is given."""
    n_channels = len(given[0].gains)
    values = {"n_channels": n_channels, "nyquist": spectra.shape[3] - n_channels, "spectra_per_heap": heap, **how}
    inputs = {name: np.stack([getattr(each, name) for each in given]) for name in ("delays", "phases", "gains")}
    inputs |= {"spectra": spectra, "saturated": np.zeros((spectra.shape[2] // heap, len(given), 2), np.uint32)}
    return launched(target, POSTPROC, values, inputs)
