"""Receivers under a sky of two point sources: their samples and settings, and the theory of their products.

Polarisation p of receiver i is stream u = 2 i + p. A product [u, v] is the mean over spectra of x[u] conj(x[v]): all of
them together are a Hermitian matrix of each channel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import erfc, isqrt, pi, sqrt

import numpy as np

from .sky import Figure, Setting, correlations, noise, quantised, turn

ROUNDED = 1 / 12  # the variance that rounding adds to a number
LETTERS = ("aa", "ba", "ab", "bb")  # product p + 2 q
NAMES = ("first source", "second source")


@dataclass(frozen=True)
class Source:
    """White noise from one direction. ``components``: [2, n], how strong each of n independent streams is in either
    polarisation; ``late``: [n_receivers, 2], samples until it arrives.
    """

    components: np.ndarray
    late: np.ndarray

    @property
    def coherency(self) -> np.ndarray:
        """[2, 2]: the mean products of the polarisations."""
        return np.asarray(self.components @ self.components.T)

    def streams(self, rng: np.random.Generator, n_samples: int) -> np.ndarray:
        """float64 [n_receivers, 2, n_samples]."""
        found = np.zeros((*self.late.shape, n_samples))
        for strength in self.components.T:
            white = noise(rng, n_samples, 1.0, self.late.reshape(-1)).reshape(found.shape)
            found += strength[:, np.newaxis] * white
        return found


@dataclass(frozen=True)
class Theory:
    """Mean products as they are expected.

    products: complex128 [C, streams, streams]. templates: of each source its part of them, for a coherency of 1:
    [2, C, streams, streams]. coherencies: [2, 2, 2]. beyond: samples that it is later than the phase centre: [2,
    streams]. weights: the filter.
    """

    products: np.ndarray
    templates: np.ndarray
    coherencies: np.ndarray
    beyond: np.ndarray
    weights: np.ndarray

    def of(self, channels: slice, streams: np.ndarray) -> "Theory":
        """Of some channels, and of both streams of some receivers."""
        few = np.s_[..., channels, streams[:, np.newaxis], streams]
        chosen = {"products": self.products[few], "templates": self.templates[few]}
        return replace(self, **chosen, beyond=self.beyond[:, streams])

    def part(self, source: int) -> np.ndarray:
        """Of the products, that of one source."""
        n_receivers = self.products.shape[1] // 2
        return np.asarray(self.templates[source] * np.tile(self.coherencies[source], (n_receivers, n_receivers)))


@dataclass(frozen=True)
class Sky:
    """Sources, of which the first is the phase centre, and receivers with noise of their own: rms [n_receivers, 2]."""

    sources: tuple[Source, Source]
    noises: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """What offsets make up for: the nearest whole samples, int64 [n_receivers, 2]."""
        return np.asarray(np.rint(self.sources[0].late), np.int64)

    @property
    def left(self) -> np.ndarray:
        """What they leave to the fine delays."""
        return np.asarray(self.sources[0].late - self.whole)

    def samples(self, rng: np.random.Generator, n_samples: int, bits: int) -> np.ndarray:
        """int64 [streams, n_samples]."""
        own = self.noises[..., np.newaxis] * rng.standard_normal((*self.noises.shape, n_samples))
        streams = sum((source.streams(rng, n_samples) for source in self.sources), own)
        return quantised(streams.reshape(-1, n_samples), bits)

    def settings(self, first: int, n_spectra: int, gains: np.ndarray) -> list[Setting]:
        """Of each receiver, for the phase centre. Streams are read from sample ``first`` on, or as much later as they
        are late. gains: [n_receivers, C, 2].
        """
        found = []
        for whole, left, gain in zip(self.whole, self.left, gains, strict=True):
            delays = np.broadcast_to(-left, (n_spectra, 2)).astype(np.float32)
            phases = np.broadcast_to(pi / 2 * left, (n_spectra, 2)).astype(np.float32)  # turns are about channel C / 2
            found.append(Setting((first + int(whole[0]), first + int(whole[1])), delays, phases, gain))
        return found

    def theory(self, weights: np.ndarray, gains: np.ndarray, largest: int) -> Theory:
        """Products of voltages whose parts are clipped to ``largest``.

        A source that is e samples later at u than at v, as they are read, and d of these beyond the phase centre, has
        in channel k the product A(e) e^(-2 pi i d k / L): A is the filter's autocorrelation. What lies beyond the
        band's upper edge is neglected: only the last channel has some, 55 dB down.
        """
        n_channels, n_streams = gains.shape[1], 2 * len(gains)
        of_streams = gains.astype(complex).transpose(1, 0, 2).reshape(n_channels, n_streams)
        scale = of_streams[:, :, np.newaxis] * of_streams[:, np.newaxis].conj()
        cycles = np.arange(n_channels) / weights.shape[1]
        beyond = np.stack([(source.late - self.sources[0].late).reshape(-1) for source in self.sources])
        seen = [(source.late - self.whole).reshape(-1) for source in self.sources]
        templates = np.stack(
            [
                scale * turn(np.multiply.outer(-cycles, apart(d))) * autocorrelation(weights, apart(e))
                for d, e in zip(beyond, seen, strict=True)
            ]
        )
        coherencies = np.stack([source.coherency for source in self.sources])
        linear = Theory(np.zeros_like(scale), templates, coherencies, beyond, weights)
        products = linear.part(0) + linear.part(1)
        own = (self.noises.reshape(-1) ** 2 + ROUNDED) * np.sum(weights.astype(float) ** 2)
        diagonal = np.arange(n_streams)
        power = products[:, diagonal, diagonal].real + own * np.abs(of_streams) ** 2
        factor, square = clipped(np.sqrt(power / 2), largest)
        factors = factor[:, :, np.newaxis] * factor[:, np.newaxis]
        products *= factors
        products[:, diagonal, diagonal] = 2 * square  # of two parts
        return replace(linear, products=products, templates=templates * factors)


def baselines(n_receivers: int) -> tuple[np.ndarray, np.ndarray]:
    """The earlier and the later receiver of each, i <= j, in the order j (j + 1) / 2 + i."""
    later, earlier = np.tril_indices(n_receivers)
    return earlier, later


def matrices(visibilities: np.ndarray) -> np.ndarray:
    """complex128 [C, u, v], of the visibilities [C, n_baselines, 4, 2]."""
    n_channels, n_baselines = visibilities.shape[:2]
    n_receivers = isqrt(2 * n_baselines)
    i, j = baselines(n_receivers)
    joined = visibilities[..., 0] + 1j * visibilities[..., 1]
    found = np.empty((n_channels, 2 * n_receivers, 2 * n_receivers), complex)
    for p, q in np.ndindex(2, 2):
        found[:, 2 * i + p, 2 * j + q] = joined[..., p + 2 * q]
        found[:, 2 * j + q, 2 * i + p] = joined[..., p + 2 * q].conj()
    return found


def apart(values: np.ndarray) -> np.ndarray:
    """Differences [u, v]."""
    return np.subtract.outer(values, values)


def autocorrelation(weights: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """Of w, the sum over n of w[n] w[n - lag], for lags that need not be whole: float64, of their shape."""
    power = np.abs(np.fft.fft(weights.reshape(-1).astype(float), 4 * weights.size)) ** 2
    frequencies = np.fft.fftfreq(power.size)
    near = np.abs(frequencies) < 4 / weights.shape[1]  # the filter passes nothing beyond
    return np.asarray(np.cos(2 * pi * np.multiply.outer(lags, frequencies[near])) @ power[near] / power.size)


def clipped(sigma: np.ndarray, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Of normal numbers that are rounded and clipped: the factor by which mean products with others change (J. J.
    Bussgang, Crosscorrelation functions of amplitude-distorted Gaussian signals, 1952), and the mean square.
    """
    edges = np.arange(largest) + 0.5  # where |x| becomes 1, 2, .., largest
    ratios = np.divide.outer(edges, sigma)
    factor = 2 * np.sum(np.exp(-(ratios**2) / 2), axis=0) / (sqrt(2 * pi) * sigma)
    beyond = np.vectorize(erfc)(ratios / sqrt(2))
    return factor, np.tensordot(2 * edges, beyond, axes=1)  # m^2 - (m - 1)^2 = 2 (m - 1/2)


# ---------------------------------------------------------------------- statistics
def in_channel(weights: np.ndarray) -> float:
    """Of the spectra of white noise: the sum of |rho|^2 over the spectra around one, in its channel."""
    w = weights.astype(float)
    products = [float(np.sum(w[: len(w) - a] * w[a:])) for a in range(len(w))]
    return 2 * sum((product / products[0]) ** 2 for product in products) - 1


def powers(products: np.ndarray) -> np.ndarray:
    """Of both streams of a product, multiplied: float64 [C, u, v]."""
    each = np.diagonal(products, axis1=1, axis2=2).real
    return np.asarray(each[:, :, np.newaxis] * each[:, np.newaxis])


def shared(products: np.ndarray) -> np.ndarray:
    """The sum of |rho|^2 over all products of a channel: [C]."""
    return np.asarray(np.sum(np.abs(products) ** 2 / powers(products), axis=(1, 2)))


def estimated(estimator: np.ndarray, found: np.ndarray, products: np.ndarray, n: float) -> tuple[complex, float]:
    """The sum of ``estimator`` times what was found, [C, u, v], and its rms error, of n independent spectra. Errors of
    normal streams have the covariance R[u, k] conj(R[v, l]) / n for products [u, v] and [k, l]: where these are the
    same, the radiometer equation.
    """
    variance = np.sum(estimator * (products @ estimator.conj() @ products)).real / n
    return complex(np.sum(estimator * found)), sqrt(variance)


# ---------------------------------------------------------------------- products, compared
def compared(found: np.ndarray, theory: Theory, n_spectra: int) -> list[Figure]:
    """Mean products of so many spectra with theory. Bounds: five standard deviations, and six where it is the worst of
    many. Spectra that share samples count as fewer.
    """
    n_channels, n = found.shape[:2]
    both, independent = powers(theory.products), n_spectra / correlations(theory.weights)[1]
    errors = np.abs(found - theory.products) / np.sqrt(both * in_channel(theory.weights) / n_spectra)
    # The mean square of a Hermitian matrix of errors varies by sqrt 2 / n^2 of its sum of |rho|^2.
    varies = sqrt(2) * float(np.linalg.norm(shared(theory.products))) / (n**2 * n_channels)
    power, off = estimated(np.eye(n) / (n_channels * n * np.sqrt(both)), found, theory.products, independent)
    u, v = np.triu_indices(n)
    return [
        Figure("mean square of all differences", float(np.mean(errors**2)), 1, 5 * varies, "sigma^2"),
        Figure(f"largest of {n_channels * u.size} differences", float(errors[:, u, v].max()), 0, 6, "sigma"),
        Figure("powers, on average", power.real, 1, 5 * off, "of theory"),
        *of_sources(found, theory, independent),
        *of_baselines(found, theory, independent),
    ]


def worst(figures: Sequence[Figure]) -> Figure:
    return max(figures, key=lambda figure: abs(figure.measured - figure.expected) / figure.bound)


def of_sources(found: np.ndarray, theory: Theory, n: float) -> list[Figure]:
    """The sources' coherencies, by least squares from the products of different receivers i < j."""
    weights = 1 / powers(theory.products)
    u, v = np.indices(weights.shape[1:])
    figures: list[list[Figure]] = [[], []]
    phases: list[list[Figure]] = [[], []]
    for product, letters in enumerate(LETTERS):
        p, q = product % 2, product // 2
        templates = theory.templates * ((u // 2 < v // 2) & (u % 2 == p) & (v % 2 == q))
        gram = np.einsum("cuv,kcuv,lcuv->kl", weights, templates.conj(), templates)
        estimators = np.einsum("kl,cuv,lcuv->kcuv", np.linalg.inv(gram), weights, templates.conj())
        for k, name in enumerate(NAMES):
            value, sigma = estimated(estimators[k], found, theory.products, n)
            expected = float(theory.coherencies[k, p, q])
            figures[k].append(Figure(f"{name}, {letters}", value.real, expected, 5 * sigma, ""))
            if expected:
                angle = float(np.arcsin(5 * sigma / expected))
                phases[k].append(Figure(f"{name}, phase of these", float(np.angle(value)), 0, angle, "rad"))
    return [*figures[0], worst(phases[0]), *figures[1], worst(phases[1])]


def of_baselines(found: np.ndarray, theory: Theory, n: float) -> list[Figure]:
    """What a baseline has of a source, when the other is taken away; of all baselines the worst."""
    figures = []
    for k, name in enumerate(NAMES):
        rest, part = found - theory.part(1 - k), theory.part(k)
        each = []
        for i, j in combinations(range(found.shape[1] // 2), 2):
            few = np.array([2 * i, 2 * i + 1, 2 * j, 2 * j + 1])
            of_few = np.s_[:, few[:, np.newaxis], few]
            apart_by = float(theory.beyond[k, few[0]] - theory.beyond[k, few[2]])
            step = theory.weights.shape[1]
            each.append(of_baseline(name, rest[of_few], part[of_few], theory.products[of_few], apart_by, step, n))
        figures += [worst(of_kind) for of_kind in zip(*each, strict=True)]
    return figures


def of_baseline(
    name: str, found: np.ndarray, part: np.ndarray, products: np.ndarray, apart_by: float, step: int, n: float
) -> tuple[Figure, Figure]:
    """Of the four streams of two receivers: the phase of what was found, and its slope over channels, a delay."""
    matched = np.zeros(part.shape, complex)
    matched[:, :2, 2:] = (part.conj() / powers(products))[:, :2, 2:]
    strength = np.sum(matched * part, axis=(1, 2)).real
    k = np.arange(len(found)) - np.average(np.arange(len(found)), weights=strength)
    value, off = estimated(matched / strength.sum(), found, products, n)
    # Angles are small: they are their sines.
    slope, wobble = estimated(matched * k[:, np.newaxis, np.newaxis] / (strength @ k**2), found, products, n)
    to_samples = step / (2 * pi)
    late = apart_by - slope.imag * to_samples
    return (
        Figure(f"{name}, phase on a baseline", float(np.angle(value)), 0, float(np.arcsin(6 * off)), "rad"),
        Figure(f"{name}, delay on a baseline", late, apart_by, 6 * wobble * to_samples, "samples"),
    )
