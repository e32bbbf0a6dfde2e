"""Packed samples of a digitiser's polarisations, made on the fly. They depend only on time, not on earlier calls."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ...core.errors import UsageError
from ..files.packing import pack_samples
from .counter_noise import BLOCK, dither_block
from .waveforms import Signal


class PacketMaker(Protocol):
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


class DigitisedSignal:
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
        self._kept: tuple[int, np.ndarray, np.ndarray] | None = None  # the block that was made last

    def samples(self, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the samples of the times [begin, begin + n), and whether each is saturated.

        int16 [n_pols, n] and bool [n_pols, n].
        """
        values, saturated = np.empty((self.n_pols, n), np.int16), np.empty((self.n_pols, n), bool)
        done = 0
        while done < n:
            number, at = divmod(begin + done, BLOCK)
            here = slice(done, min(n, done + BLOCK - at))
            there = slice(at, at + here.stop - done)
            block, beyond = self._block(number)
            values[:, here], saturated[:, here] = block[:, there], beyond[:, there]
            done = here.stop
        return values, saturated

    def read(self, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns packets; see ``PacketMaker``."""
        must_be_packets(begin, n, self.packet)
        values, saturated = self.samples(begin, n)
        counts = np.count_nonzero(saturated.reshape(self.n_pols, -1, self.packet), axis=2)
        return pack_samples(values, self.sample_bits), counts

    def _block(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the result of ``samples`` for the block that begins at ``number`` BLOCK."""
        kept = self._kept
        if kept is not None and kept[0] == number:
            return kept[1:]
        most = 2 ** (self.sample_bits - 1) - 1
        x = np.stack([signal.block(number) for signal in self.signals])
        x *= most
        if self.dither is not None:
            for pol, row in enumerate(x):
                row += dither_block(self.dither, pol, number)
        np.rint(x, out=x)
        saturated = (x > most) | (x < -most - 1)
        values = np.clip(x, -most - 1, most).astype(np.int16)
        self._kept = number, values, saturated
        return values, saturated


def must_be_packets(begin: int, n: int, packet: int) -> None:
    """Raises UsageError when a range of times is not whole packets."""
    if begin % packet or n % packet or n < 0:
        raise UsageError(f"samples {begin} to {begin + n} are not whole packets of {packet} samples")
