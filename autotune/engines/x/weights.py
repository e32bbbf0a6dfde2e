"""Counts the spectra that both antennas of a pair have: the weights of visibilities."""

from collections.abc import Mapping

import numpy as np

from .x_settings import PRODUCTS

N_POLS = 2


class PairedSpectra:
    """Counts of the spectra that are whole in each pair of antennas and polarisations. Whole batches cost nothing.

    Args:
        n_antennas: heaps in a batch.
        spectra_per_heap: fewer than 2^24, since float32 counts them.
    """

    def __init__(self, n_antennas: int, spectra_per_heap: int) -> None:
        self._n_antennas, self._n_spectra = n_antennas, spectra_per_heap
        self._j, self._i = np.tril_indices(n_antennas)
        self.clear()

    def clear(self) -> None:
        """Set all counts to 0."""
        self._n_whole = 0  # spectra that all antennas have
        self._by_heaps: np.ndarray | None = None  # spectra in batches without holes, int64 [antenna, antenna]
        self._by_spectra: np.ndarray | None = None  # spectra in other batches, int64 [antenna and pol, antenna and pol]

    def add(self, present: np.ndarray, holes: Mapping[tuple[int, int], np.ndarray]) -> None:
        """Add batches. ``present``: bool [n_batches, n_antennas], heaps that came; ``holes``: as in ``Batches``."""
        by_batch: dict[int, list[int]] = {}
        for batch, antenna in holes:
            by_batch.setdefault(batch, []).append(antenna)
        for batch, antennas in by_batch.items():
            flags = np.repeat(present[batch], N_POLS)[:, np.newaxis] * np.ones(self._n_spectra, np.float32)
            for antenna in antennas:
                flags[N_POLS * antenna : N_POLS * (antenna + 1)] = holes[batch, antenna].T  # one stands for both
            both = (flags @ flags.T).astype(np.int64)
            self._by_spectra = both if self._by_spectra is None else self._by_spectra + both
        without = np.delete(present, list(by_batch), axis=0)
        is_whole = np.asarray(without.all(axis=1))
        self._n_whole += self._n_spectra * int(np.count_nonzero(is_whole))
        if not is_whole.all():
            came = without[~is_whole].astype(np.float32)
            both = self._n_spectra * (came.T @ came).astype(np.int64)
            self._by_heaps = both if self._by_heaps is None else self._by_heaps + both

    def weights(self) -> np.ndarray:
        """Returns the number of spectra in each product: uint32 [n_baselines, 4].

        Baselines are in the order of ``correlate``: antennas (j, i) with i <= j, i fastest; and products aa, ba,
        ab, bb of the polarisations (a, b) of antenna i and those of antenna j.
        """
        counts = np.full((len(self._i), PRODUCTS), self._n_whole, np.int64)
        if self._by_heaps is not None:
            counts += self._by_heaps[self._i, self._j, np.newaxis]
        if self._by_spectra is not None:
            for product in range(PRODUCTS):
                q, p = divmod(product, N_POLS)
                counts[:, product] += self._by_spectra[N_POLS * self._i + p, N_POLS * self._j + q]
        return counts.astype(np.uint32)
