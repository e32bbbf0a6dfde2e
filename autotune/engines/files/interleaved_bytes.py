"""Samples of several channels and polarisations that are interleaved in a file, time by time or in heaps."""

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from .numbers import INT8, Numbers
from .reading import MOST_PACKET, Bytes, refuse

AT_ONCE = 1 << 22  # bytes that are read together


@dataclass(frozen=True)
class Layout:
    """The order of samples: [time, channel, polarisation, part], or with the middle two exchanged."""

    n_channels: int
    n_pols: int
    is_complex: bool
    channel: int  # the channel to read
    pols_first: bool = False  # whether polarisation comes before channel
    numbers: Numbers = INT8
    second: int | None = None  # a channel to read as the second polarisation, in a file of one polarisation

    @property
    def n_together(self) -> int:
        """Returns the number of times that lie together, which is the most that a packet may have."""
        return MOST_PACKET

    @property
    def parts(self) -> int:
        return 2 if self.is_complex else 1

    @property
    def sample_bytes(self) -> int:
        """Returns the bytes of one time; 4-bit numbers are always parts of complex samples."""
        return self.n_channels * self.n_pols * self.parts * self.numbers.bits // 8

    @property
    def sample_bits(self) -> int:
        """Returns the bits of a sample, for SampleInfo."""
        return self.numbers.sample_bits(self.is_complex)

    def whole(self, n_bytes: int) -> int:
        """Returns the number of whole times in ``n_bytes``."""
        return n_bytes // self.sample_bytes

    def bytes_of(self, n: int) -> int:
        """Returns the bytes of ``n`` times."""
        return n * self.sample_bytes

    def n_in(self, out: np.ndarray) -> int:
        """Returns the number of times that fit into ``out`` of ``read``."""
        return int(out.shape[1]) * 8 * out.itemsize // self.sample_bits

    def read(self, file: Bytes, begin: int, first: int, out: np.ndarray) -> None:
        """Fills ``out`` with samples, packed in uint8, or complex64 [n_pols, n].

        Args:
            begin: the first byte of the samples.
            first: the first time to read, counted from there.

        Raises:
            UsageError: when the file is too short.
        """
        n, offset = self.n_in(out), begin + first * self.sample_bytes
        step, width = max(1, AT_ONCE // self.sample_bytes), self.sample_bits // (8 * out.itemsize)
        buffer = np.empty(min(n, step) * self.sample_bytes, np.uint8)
        for start in range(0, n, step):
            some = buffer[: min(step, n - start) * self.sample_bytes]
            if file.fill(some, offset + start * self.sample_bytes) < len(some):
                refuse(file.path, f"it became shorter than {offset + n * self.sample_bytes} bytes while it was read")
            self.numbers.put(self.wanted(some), out[:, start * width : (start + step) * width])

    def wanted(self, raw: np.ndarray) -> np.ndarray:
        """Returns the numbers of the wanted channel, [n_pols, n, parts], from uint8 [n_bytes] of whole samples."""
        numbers = self.numbers.of(raw)
        if self.pols_first:
            some = numbers.reshape(-1, self.n_pols, self.n_channels, self.parts)[:, :, self.channel]
        elif self.second is not None:
            some = numbers.reshape(-1, self.n_channels, self.parts)[:, [self.channel, self.second]]
        else:
            some = numbers.reshape(-1, self.n_channels, self.n_pols, self.parts)[:, self.channel]
        return some.swapaxes(0, 1)


@dataclass(frozen=True)
class HeapLayout(Layout):
    """Samples in heaps of 256 times, [heap, polarisation, channel, time, part], as MeerKAT's beamformer sends them.

    Source: A. van der Byl et al., MeerKAT correlator-beamformer, JATIS 8(1), 011006 (2021),
    https://doi.org/10.1117/1.JATIS.8.1.011006.
    """

    n_heap: int = 256

    @property
    def n_together(self) -> int:
        return self.n_heap

    def whole(self, n_bytes: int) -> int:
        """Returns the number of times in the whole heaps in ``n_bytes``."""
        return n_bytes // (self.n_heap * self.sample_bytes) * self.n_heap

    def read(self, file: Bytes, begin: int, first: int, out: np.ndarray) -> None:
        """Fills ``out``; see ``Layout``. It reads only the wanted channel, whose samples lie together in a heap."""
        n, done = out.shape[1], 0
        while done < n:
            heap, skipped = divmod(first + done, self.n_heap)
            some = np.empty((self.n_pols, min(self.n_heap - skipped, n - done), self.parts), np.int8)
            for pol, row in enumerate(some):
                rows = (heap * self.n_pols + pol) * self.n_channels + self.channel
                offset = begin + (rows * self.n_heap + skipped) * self.parts
                if file.fill(row, offset) < row.size:
                    refuse(file.path, f"it became shorter than {offset + row.size} bytes while it was read")
            self.numbers.put(some, out[:, done : done + some.shape[1]])
            done += some.shape[1]


@dataclass(frozen=True)
class PackedLayout(Layout):
    """Samples of one polarisation as SampleInfo has them: packed, or complex float32."""

    bits: int = 8

    @property
    def sample_bits(self) -> int:
        return self.bits

    def whole(self, n_bytes: int) -> int:
        """Returns the number of samples in ``n_bytes`` that fill whole bytes."""
        least = 8 // gcd(8, self.bits)
        return n_bytes * 8 // self.bits // least * least

    def bytes_of(self, n: int) -> int:
        return -(-n * self.bits // 8)

    def read(self, file: Bytes, begin: int, first: int, out: np.ndarray) -> None:
        """Fills ``out``; see ``Layout``."""
        row, offset = out[0].view(np.uint8), begin + self.bytes_of(first)
        if file.fill(row, offset) < len(row):
            refuse(file.path, f"it became shorter than {offset + len(row)} bytes while it was read")


def centre_of(channel: int, n_channels: int, centre_hz: Fraction, bandwidth_hz: Fraction) -> float:
    """Returns the centre frequency of one of a band's channels, in Hz."""
    return float(centre_hz + (Fraction(2 * channel + 1, 2 * n_channels) - Fraction(1, 2)) * bandwidth_hz)
