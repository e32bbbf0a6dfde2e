"""The samples that antennas record of a sky, in blocks. A block depends only on the sky and its number.

An antenna that a wave reaches tau later than the reference point, mixed down by f_low, has (Thompson, Moran, Swenson,
Interferometry and Synthesis in Radio Astronomy, section 3.1)

    x(t) = Re s(t - tau(t)) e^(-2 pi i f_low tau(t)),

where s is the analytic signal of what the reference point has. s is white noise, which is delayed in the frequency
domain: each of its frequencies is turned by -2 pi f tau. Near 0 and near half the sampling rate the noise fades out,
so that a delay by parts of a sample has a short impulse response: segments overlap by it. The fringe of the phase
centre, f_low tau(t), is turned sample by sample. How far others turn beyond it, and what tau leaves to the segment's
phases, is that of the block's middle.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, pi

import numpy as np

from ..simulated.sample_blocks import Blocks, quantised
from .spec import Sky, Tone
from .track import Track

SEGMENT = 1 << 15  # samples of an FFT
GUARD = 1024  # samples at either end of it, longer than the impulse response: 1e-6 of it is left there
BLOCK = SEGMENT - 2 * GUARD  # samples, whole bytes at any number of bits
FADE = 1 / 64  # share of the band at either end in which noise of sources fades
ROW = 128  # tables of phases are outer products of two short ones; divides BLOCK and half of SEGMENT
OWN, COMMON = 0, 1  # kinds of noise: an antenna's, a source's


class SkySamples:
    """Makes the samples of all antennas, block by block, in any order.

    Blocks of one order share noises of sources, each of which is made once.
    """

    def __init__(self, sky: Sky) -> None:
        self.sky, self.track = sky, Track(sky, BLOCK)
        self.n_blocks = ceil(sky.n_samples / BLOCK)
        self._noises = [[_noise(sky.seed, source, each) for each in range(2)] for source in range(len(sky.sources))]
        self._mixes = [source.components[: sky.n_pols].astype(np.float32) for source in sky.sources]
        self._fade = faded(np.arange(0, 1, 2 / SEGMENT), FADE).astype(np.float32).reshape(-1, ROW)

    def block(self, number: int) -> Iterator[np.ndarray]:
        """Yields for each antenna its samples from ``number`` BLOCK on: int16 [n_pols, BLOCK], fewer in the last."""
        start, low, most = number * BLOCK, self.sky.low, 2 ** (self.sky.sample_bits - 1) - 1
        n = min(BLOCK, self.sky.n_samples - start)
        delays, rates = self.track.at(start)
        middle = delays + rates * (BLOCK / 2)
        seen = [self._noise_of_source(source, start, middle[1 + source]) for source in range(len(self.sky.sources))]
        tones = [_tone(self.sky, tone, start) for tone in self.sky.tones]
        for antenna, each in enumerate(self.sky.antennas):
            x = self._noise_of_antenna(antenna, number)
            if seen:
                fringe = phasors(-low * delays[0, antenna], -low * rates[0, antenna], BLOCK)
                x += self._fringed(self._spectrum(seen, middle[:, antenna], antenna), fringe.reshape(-1))
            for tone, wave in zip(self.sky.tones, tones, strict=True):
                if tone.antennas is None or each.name in tone.antennas:
                    x += wave
            yield quantised(x[:, :n], -most, most)[0]

    def _noise_of_antenna(self, antenna: int, number: int) -> np.ndarray:
        """Returns an antenna's own noise: float32 [n_pols, BLOCK]."""
        x = np.empty((self.sky.n_pols, BLOCK), np.float32)
        for pol, row in enumerate(x):
            rng = np.random.default_rng([self.sky.seed, OWN, antenna, pol, number])
            rng.standard_normal(dtype=np.float32, out=row)
        x *= np.float32(self.sky.noise_level)
        return x

    def _noise_of_source(self, source: int, start: int, delays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns a source's noise as the reference point has it, and where each antenna's segment of it begins.

        float32 [n_pols, n], from the segment of the antenna that is latest to that of the one that is earliest; each is
        late by whole samples.
        """
        begins = start - GUARD - np.rint(delays).astype(np.int64)
        first, last = int(begins.min()), int(begins.max())
        white = np.stack([noise.take(first, last - first + SEGMENT) for noise in self._noises[source]])
        return self._mixes[source] @ white, begins - first

    def _spectrum(self, seen: list[tuple[np.ndarray, np.ndarray]], delays: np.ndarray, antenna: int) -> np.ndarray:
        """Returns the spectrum of what an antenna gets of all sources: complex64 [n_pols, SEGMENT], half of it 0.

        ``delays``: of the phase centre and the sources; what they are beyond whole samples is made up for here, and
        fringes beyond that of the phase centre.
        """
        spectrum = np.zeros((self.sky.n_pols, SEGMENT), np.complex64)
        half = spectrum[:, : SEGMENT // 2].reshape(len(spectrum), -1, ROW)
        centre, *others = delays.tolist()
        for (noise, begins), delay in zip(seen, others, strict=True):
            segment = noise[:, begins[antenna] : begins[antenna] + SEGMENT]
            turned = np.fft.rfft(segment)[:, :-1].reshape(half.shape)
            turned *= phasors(-self.sky.low * (delay - centre), -(delay - np.rint(delay)) / SEGMENT, SEGMENT // 2)
            half += turned
        half *= self._fade
        return spectrum

    def _fringed(self, spectrum: np.ndarray, fringe: np.ndarray) -> np.ndarray:
        """Returns the samples of a spectrum, turned by ``fringe``, complex64 [BLOCK]: float32 [n_pols, BLOCK]."""
        analytic = np.fft.ifft(spectrum)[:, GUARD : GUARD + BLOCK]
        x = analytic.real * fringe.real
        x -= analytic.imag * fringe.imag
        x *= np.float32(2 * self.sky.noise_level)
        return np.asarray(x)


def _noise(seed: int, source: int, number: int) -> Blocks:
    """Returns white noise of rms 1, one of a source's two: float32."""

    def drawn(part: int) -> np.ndarray:
        rng = np.random.default_rng([seed, COMMON, source, number, part + (1 << 62)])  # it takes no negative numbers
        return np.asarray(rng.standard_normal(SEGMENT, np.float32))

    return Blocks(drawn, SEGMENT)


def phasors(cycles: float, cycles_each: float, n: int) -> np.ndarray:
    """Returns e^(2 pi i (``cycles`` + ``cycles_each`` k)) for k < n: complex64 [n / ROW, ROW]."""
    slow = (cycles + cycles_each * ROW * np.arange(n // ROW)) % 1
    fast = cycles_each * np.arange(ROW) % 1
    table = np.exp(2j * pi * slow).astype(np.complex64)[:, np.newaxis]
    return np.asarray(table * np.exp(2j * pi * fast).astype(np.complex64))


def faded(places: np.ndarray, share: float) -> np.ndarray:
    """Returns gains that rise and fall as a cosine does within ``share`` of either end: float64 [n].

    ``places``: from 0, where the band begins, to 1; beyond them the gain is 0.
    """
    from_end = np.clip(np.minimum(places, 1 - places), 0, share)
    return np.asarray(np.sin(pi / 2 * from_end / share) ** 2)


def _tone(sky: Sky, tone: Tone, start: int) -> np.ndarray:
    """Returns the samples of a tone from ``start`` on: float32 [BLOCK]."""
    frequency = tone.frequency_hz / sky.sample_rate_hz - sky.low
    cycles = float(Fraction(frequency) * start % 1) + tone.phase / (2 * pi)
    return np.asarray(np.float32(tone.amplitude) * phasors(cycles, frequency, BLOCK).reshape(-1).real)
