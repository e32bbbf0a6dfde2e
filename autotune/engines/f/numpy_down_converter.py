"""Down-converts on the host's cores with NumPy. It computes what ``ddc`` does, also in float32.

The weights include the mixer, and outputs are sums over a matrix product: weights in rows of the decimation D, times
samples in columns of D. Output j is the sum over q of the product of weight row q and sample column j + q, rotated by
the mixer's phase at sample j D.
"""

from collections.abc import Mapping

import numpy as np

from ...system.one_thread import one_thread
from ..machine.host_backend import HostBackend, HostStream
from ..machine.host_samples import unpack_floats

PIECE = 1 << 17  # about the samples or products in a piece, 512 KiB


class NumpyDownConverter:
    """Replaces a launcher of ``ddc`` for one polarisation.

    Args:
        weights: float32 [taps], the low-pass filter.
        bits: bits of a sample.
        centre: the frequency that becomes 0, in cycles per sample.
    """

    def __init__(self, backend: HostBackend, weights: np.ndarray, decimation: int, bits: int, centre: float) -> None:
        self._workers, self._decimation, self._bits, self._centre = backend.workers, decimation, bits, centre
        n_rows = -(-weights.size // decimation)
        mixed = np.zeros(n_rows * decimation, np.complex128)
        mixed[: weights.size] = weights * np.exp(-2j * np.pi * centre * np.arange(weights.size))
        rows = mixed.astype(np.complex64).reshape(n_rows, decimation)
        self._rows = np.concatenate([rows.real, rows.imag])

    def __call__(
        self, problem: object, arrays: Mapping[str, np.ndarray], inputs: Mapping[str, float], on: HostStream
    ) -> None:
        """Fill complex64 [1, n] from uint8 [1, n_bytes]. inputs["mix_phase"]: cycles, at the first sample."""
        (row,), (baseband,) = arrays["samples"], arrays["baseband"]
        step = max(1, PIECE // max(self._decimation, len(self._rows)))
        pieces = [slice(first, min(first + step, len(baseband))) for first in range(0, len(baseband), step)]
        with one_thread():
            self._workers.each(lambda some: self._make(row, baseband, some, inputs["mix_phase"]), pieces)

    def _make(self, row: np.ndarray, baseband: np.ndarray, some: slice, phase: float) -> None:
        """Makes some outputs. The last one may need fewer samples than its rows of weights hold."""
        decimation, n, n_rows = self._decimation, some.stop - some.start, len(self._rows) // 2
        samples = np.zeros((n + n_rows - 1) * decimation, np.float32)
        first = some.start * decimation
        unpack_floats(row, self._bits, first, samples[: row.size * 8 // self._bits - first])
        products = self._rows @ samples.reshape(-1, decimation).T
        sums = np.zeros((2, n), np.float32)
        for q in range(n_rows):
            sums += products[q::n_rows, q : q + n]
        cycles = phase - self._centre * decimation % 1.0 * np.arange(some.start, some.stop)
        baseband[some] = (sums[0] + 1j * sums[1]) * np.exp(2j * np.pi * cycles)
