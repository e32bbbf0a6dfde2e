"""Packed samples of a digitiser's polarisations, made on the fly. They depend only on time, not on earlier calls."""

from collections.abc import Sequence

import numpy as np

from ...core.errors import UsageError
from ..files.packing import pack_samples
from ..simulated.sample_blocks import Blocks, quantised
from .counter_noise import BLOCK, dither_block
from .waveforms import Signal


class PacketMaker:
    """An object that makes the packets of all polarisations."""

    n_pols: int
    sample_bits: int
    packet: int  # samples

    def read(self, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the packed samples of the times [begin, begin + n), and the number of saturated ones in each packet.

        uint8 [n_pols, n sample_bits / 8], most significant bit first, and int64 [n_pols, n / packet].

        Raises:
            UsageError: when ``begin`` or ``n`` is not a multiple of the packet.
        """
        if begin % self.packet or n % self.packet or n < 0:
            raise UsageError(f"samples {begin} to {begin + n} are not whole packets of {self.packet} samples")
        return self._packets(begin, n)

    def _packets(self, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class DigitisedSignal(PacketMaker):
    """A signal for each polarisation, quantised.

    A sample is the signal times the largest value, 2^(sample_bits - 1) - 1, rounded to the nearest integer, half to
    even. What then lies above that value, or below -2^(sample_bits - 1), is saturated: it becomes the limit, and is
    counted.

    Args:
        signals: the signals of one or two polarisations.
        sample_bits: 2 to 16.
        packet: samples of one packet, whole bytes.
        dither: the seed of what is added before rounding, uniform in [-0.5, 0.5) and another for each polarisation;
            None: nothing is added.

    Raises:
        UsageError: for any other value.
    """

    def __init__(self, signals: Sequence[Signal], sample_bits: int, packet: int, dither: int | None = None) -> None:
        if len(signals) not in (1, 2):
            raise UsageError(f"there are {len(signals)} signals; a digitiser has one for each of 1 or 2 polarisations")
        if not 2 <= sample_bits <= 16:
            raise UsageError(f"sample_bits={sample_bits}, must be 2 to 16")
        if packet <= 0 or packet * sample_bits % 8:
            raise UsageError(f"packet={packet} samples of {sample_bits} bits are not whole bytes; give a multiple of 8")
        self.signals, self.n_pols = tuple(signals), len(signals)
        self.sample_bits, self.packet, self.dither = sample_bits, packet, dither
        self._blocks = Blocks(self._block, BLOCK)

    def samples(self, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the samples of the times [begin, begin + n), and whether each is saturated.

        int16 [n_pols, n] and bool [n_pols, n].
        """
        most = 2 ** (self.sample_bits - 1) - 1
        return quantised(self._blocks.take(begin, n), -most - 1, most)

    def _packets(self, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        values, saturated = self.samples(begin, n)
        counts = np.count_nonzero(saturated.reshape(self.n_pols, -1, self.packet), axis=2)
        return pack_samples(values, self.sample_bits), counts

    def _block(self, number: int) -> np.ndarray:
        """Returns what is rounded to samples, from ``number`` BLOCK on: float64 [n_pols, BLOCK]."""
        x = np.stack([signal.block(number) for signal in self.signals])
        x *= 2 ** (self.sample_bits - 1) - 1
        if self.dither is not None:
            for pol, row in enumerate(x):
                row += dither_block(self.dither, pol, number)
        return x
