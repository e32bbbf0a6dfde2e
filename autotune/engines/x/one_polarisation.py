"""Correlates antennas of one polarisation as if they had two. The second one is 0, and its products are dropped."""

import numpy as np

from ..streams.voltages import Batches, VoltageSource


def first_of_two(voltages: np.ndarray, bits: int) -> np.ndarray:
    """Returns the first polarisation of int8 [.., pol, 2], or [.., pol] at 4 bits, as a view with n_pols = 1."""
    return voltages[..., :1] if bits == 4 else voltages[..., :1, :]


class OnePolarisation:
    """A source of voltages of one polarisation that fills chunks of two."""

    def __init__(self, source: VoltageSource) -> None:
        self._source, self.antennas, self.is_live = source, source.antennas, source.is_live

    def read(self, out: np.ndarray) -> Batches | None:
        """Read the next batches into int8 [n_batches, n_antennas, C, spectra_per_heap, 2, 2]; see ``VoltageSource``."""
        out[...] = 0
        return self._source.read(first_of_two(out, self.antennas[0].bits))

    def close(self) -> None:
        self._source.close()
