"""Reverses a band that falls with frequency (a lower sideband): its highest sampled frequency is the lowest on the sky.

Conjugating complex samples reverses their band about frequency 0. Changing the sign of every second real sample
reverses it about a quarter of the sample rate. Both leave the centre where it is.
"""

from dataclasses import replace

import numpy as np

from ...core.packed_samples import unpack_samples
from ..streams.samples import SampleInfo, Samples, Source
from .packing import pack_samples

UPPER, LOWER = SIDEBANDS = "upper", "lower"
AT_ONCE = 1 << 18  # samples to unpack together; a multiple of 8


def _table(bits: int, first: int) -> np.ndarray:
    """Returns for each byte the byte with every second sample negated, from ``first`` on: uint8 [256]."""
    samples = unpack_samples(np.arange(256, dtype=np.uint8), bits, 0, 256 * 8 // bits).reshape(256, 8 // bits)
    samples[:, first::2] = np.minimum(-samples[:, first::2], 2 ** (bits - 1) - 1)
    return pack_samples(samples.astype(np.int16), bits)[:, 0]


TABLES = {(bits, first): _table(bits, first) for bits in (2, 4) for first in (0, 1)}


class TurnedSource:
    """A source that reverses the band of another source.

    Real samples at odd times of the stream are negated; the most negative value becomes the most positive one. A caller
    that shifts times by an odd number must change the sign back, as ``jobs.station_clock`` does.
    """

    def __init__(self, source: Source) -> None:
        self._source, self.is_live = source, source.is_live
        self.overlap: int = getattr(source, "overlap", 0)
        self.info: SampleInfo = replace(source.info, is_turned=True)

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``."""
        samples = self._source.read(out)
        if samples is not None:
            n = samples.received.shape[1] * self.info.packet
            turn(out, self.info.sample_bits, n, samples.time % 2 == 0)
        return samples

    def close(self) -> None:
        self._source.close()


def turn(rows: np.ndarray, bits: int, n: int, first_is_even: bool) -> None:
    """Reverses the band of the first ``n`` samples of each row, in place.

    Args:
        rows: packed uint8 [n_pols, n_bytes], or complex64 [n_pols, n_samples].
        bits: bits of a sample, as in SampleInfo; ``n`` samples must fill whole bytes.
        first_is_even: whether the time of the first sample is even.
    """
    if rows.dtype == np.complex64:
        imaginary = rows[:, :n].imag
        np.negative(imaginary, out=imaginary)
        return
    first, packed = int(first_is_even), rows[:, : n * bits // 8]
    if bits in (8, 16):
        odd = packed.view(f">i{bits // 8}")[:, first::2]
        np.negative(np.maximum(odd, 1 - 2 ** (bits - 1)), out=odd)
    elif bits in (2, 4):
        packed[...] = TABLES[bits, first][packed]
    else:
        for row in packed:
            for start in range(0, n, AT_ONCE):
                some = unpack_samples(row, bits, start, min(AT_ONCE, n - start))
                some[first::2] = np.minimum(-some[first::2], 2 ** (bits - 1) - 1)
                part = pack_samples(some.astype(np.int16), bits)
                row[start * bits // 8 :][: len(part)] = part
