"""Samples of 8 bits that lie time by time, with several channels and polarisations, in one piece of a file."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..stream import COMPLEX_BITS
from .reading import Bytes, refuse

AT_ONCE = 1 << 22  # bytes that are read together


@dataclass(frozen=True)
class Layout:
    """How samples lie: [time, channel, polarisation, part], or with the middle two exchanged."""

    n_channels: int
    n_pols: int
    is_complex: bool
    channel: int  # that is wanted
    pols_first: bool = False  # of the middle two

    @property
    def parts(self) -> int:
        return 2 if self.is_complex else 1

    @property
    def sample_bytes(self) -> int:
        """Returns the bytes of one time."""
        return self.n_channels * self.n_pols * self.parts

    @property
    def sample_bits(self) -> int:
        """Returns what SampleInfo says of them."""
        return COMPLEX_BITS if self.is_complex else 8

    def read(self, file: Bytes, offset: int, out: np.ndarray) -> None:
        """Fills ``out`` with the samples from byte ``offset`` on: int8 as uint8, or complex64 [n_pols, n].

        Raises:
            UsageError: when the file is shorter than that.
        """
        n = out.shape[1]
        step = max(1, AT_ONCE // self.sample_bytes)
        buffer = np.empty(min(n, step) * self.sample_bytes, np.int8)
        for start in range(0, n, step):
            some = buffer[: min(step, n - start) * self.sample_bytes]
            if file.fill(some, offset + start * self.sample_bytes) < len(some):
                refuse(file.path, f"it became shorter while it was read, than byte {offset + n * self.sample_bytes}")
            self._take(some, out[:, start : start + step])

    def _take(self, raw: np.ndarray, out: np.ndarray) -> None:
        """Puts the wanted channel of int8 [n_bytes] into ``out``."""
        if self.pols_first:
            wanted = raw.reshape(-1, self.n_pols, self.n_channels, self.parts)[:, :, self.channel]
        else:
            wanted = raw.reshape(-1, self.n_channels, self.n_pols, self.parts)[:, self.channel]
        if self.is_complex:
            out.view(np.float32).reshape(*out.shape, 2)[...] = wanted.swapaxes(0, 1)
        else:
            out.view(np.int8)[...] = wanted[..., 0].T


def centre_of(channel: int, n_channels: int, centre_hz: Fraction, bandwidth_hz: Fraction) -> float:
    """Returns the centre of one of the channels that a band is divided into."""
    return float(centre_hz + (Fraction(2 * channel + 1, 2 * n_channels) - Fraction(1, 2)) * bandwidth_hz)
