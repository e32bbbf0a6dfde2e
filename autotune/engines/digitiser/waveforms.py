"""The parts of signals: tones, combs, noise and constants, their sums and products.

A signal is a function of time, in samples since the stream's zero, and is made in blocks of BLOCK samples at absolute
multiples: samples are the same however a range of them is cut. Frequencies are cycles a sample, as exact fractions, so
that phases are exact at all times. Delays belong to tones, combs and noise; a sum's is that of each part.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, pi
from typing import Any

import numpy as np

from .counter_noise import BLOCK, gaussian_block

ROW = 128  # tables of phases are outer products of two short ones; its square is BLOCK
FARTHEST = 64.0  # limit of noise, in units of its rms; NumPy's draws are far smaller
NEAR = Fraction(1, 1000)  # samples: decimal numbers of seconds are not exactly whole samples

Rounded = Callable[[str, Fraction, Fraction], None]  # is told what was rounded: its name, its frequency, the new one


class PartOfSample(ValueError):
    """A delay is not whole samples, but the signal has values only at samples."""

    def __init__(self, name: str, samples: Fraction) -> None:
        super().__init__(name, samples)
        self.name, self.samples = name, samples


class Signal:
    """A function of time. Most kinds are one part, with an amplitude."""

    amplitude: float

    @property
    def n_parts(self) -> int:
        """Returns the number of tones, combs, noises and constants in it."""
        return 1

    @property
    def most(self) -> float:
        """Returns a magnitude that the signal never exceeds."""
        return abs(self.amplitude)

    def block(self, number: int) -> np.ndarray:
        """Returns the samples from ``number`` BLOCK on: float64 [BLOCK]; 1 is full scale."""
        raise NotImplementedError

    def delayed(self, samples: Fraction) -> "Signal":
        """Returns the signal, delayed by some samples.

        Raises:
            PartOfSample: when it contains noise or a comb, and the delay is not whole samples.
        """
        return self

    def periodic(self, period: int, rounded: Rounded) -> "Signal":
        """Returns the nearest signal that repeats every ``period`` samples."""
        return self


@dataclass(frozen=True)
class ConstantSignal(Signal):
    """The same value at all times."""

    amplitude: float

    def block(self, number: int) -> np.ndarray:
        return np.broadcast_to(np.float64(self.amplitude), BLOCK)


@dataclass(frozen=True)
class ToneSignal(Signal):
    """A cosine: amplitude cos(2 pi (frequency (t - delay) + turn))."""

    frequency: Fraction  # cycles a sample
    amplitude: float
    turn: Fraction = Fraction(0)  # its phase, in cycles
    delay: Fraction = Fraction(0)  # samples

    def block(self, number: int) -> np.ndarray:
        """Returns the samples of a block, as a product of rows and columns: cos(a + b) of two tables of ROW phases."""
        start = float((self.frequency * (number * BLOCK - self.delay) + self.turn) % 1)
        slow, fast = float(self.frequency * ROW % 1), float(self.frequency % 1)
        each = np.arange(ROW)
        a, b = 2 * pi * ((start + slow * each) % 1), 2 * pi * (fast * each % 1)
        wave = np.outer(np.cos(a), np.cos(b)) - np.outer(np.sin(a), np.sin(b))
        return np.asarray(self.amplitude * wave.reshape(-1))

    def delayed(self, samples: Fraction) -> Signal:
        return replace(self, delay=self.delay + samples)

    def periodic(self, period: int, rounded: Rounded) -> Signal:
        return replace(self, frequency=_periodic_frequency("tone", self.frequency, period, rounded))


@dataclass(frozen=True)
class CombSignal(Signal):
    """Impulses of one sample at k / frequency + delay, rounded to the nearest sample (up, half way), for all k."""

    frequency: Fraction  # cycles a sample, at most 1
    amplitude: float
    delay: int = 0  # samples

    def block(self, number: int) -> np.ndarray:
        begin, half = number * BLOCK - self.delay, Fraction(1, 2)
        first, end = (ceil((time - half) * self.frequency) for time in (begin, begin + BLOCK))
        up, down = self.frequency.denominator, self.frequency.numerator  # k up / down is exact, and so is its rounding
        places = [(2 * k * up + down) // (2 * down) - begin for k in range(first, end)]
        comb = np.zeros(BLOCK)
        comb[places] = self.amplitude
        return comb

    def delayed(self, samples: Fraction) -> Signal:
        return replace(self, delay=self.delay + _whole("a comb", samples))

    def periodic(self, period: int, rounded: Rounded) -> Signal:
        return replace(self, frequency=_periodic_frequency("comb", self.frequency, period, rounded))


@dataclass(frozen=True)
class NoiseSignal(Signal):
    """White Gaussian noise. The same seed gives the same noise."""

    amplitude: float  # the rms
    seed: int
    delay: int = 0  # samples
    period: int | None = None  # samples after which it comes again: those from 0 on

    @property
    def most(self) -> float:
        return abs(self.amplitude) * FARTHEST

    def block(self, number: int) -> np.ndarray:
        begin, pieces, n = number * BLOCK - self.delay, [], 0
        while n < BLOCK:
            time = begin + n if self.period is None else (begin + n) % self.period
            kept, at = divmod(time, BLOCK)
            most = BLOCK - n if self.period is None else min(BLOCK - n, self.period - time)
            pieces.append(gaussian_block(self.seed, kept)[at : at + most])
            n += len(pieces[-1])
        return np.asarray(self.amplitude * np.concatenate(pieces))

    def delayed(self, samples: Fraction) -> Signal:
        return replace(self, delay=self.delay + _whole("noise", samples))

    def periodic(self, period: int, rounded: Rounded) -> Signal:
        return replace(self, period=period)


@dataclass(frozen=True)
class CombinedSignal(Signal):
    """The sum or the product of two signals."""

    operation: Callable[[Any, Any], Any]  # operator.add or operator.mul
    left: Signal
    right: Signal

    @property
    def n_parts(self) -> int:
        return self.left.n_parts + self.right.n_parts

    @property
    def most(self) -> float:
        return float(self.operation(self.left.most, self.right.most))

    def block(self, number: int) -> np.ndarray:
        return np.asarray(self.operation(self.left.block(number), self.right.block(number)))

    def delayed(self, samples: Fraction) -> Signal:
        return replace(self, left=self.left.delayed(samples), right=self.right.delayed(samples))

    def periodic(self, period: int, rounded: Rounded) -> Signal:
        left, right = (side.periodic(period, rounded) for side in (self.left, self.right))
        return replace(self, left=left, right=right)


def _whole(name: str, samples: Fraction) -> int:
    """Returns a delay in whole samples. Raises PartOfSample where it is further than NEAR from them."""
    if abs(samples - round(samples)) > NEAR:
        raise PartOfSample(name, samples)
    return round(samples)


def _periodic_frequency(name: str, frequency: Fraction, period: int, rounded: Rounded) -> Fraction:
    """Returns the nearest frequency above 0 that repeats every ``period`` samples; 0 stays 0."""
    nearest = Fraction(max(round(frequency * period), 1 if frequency else 0), period)
    if nearest != frequency:
        rounded(name, frequency, nearest)
    return nearest
