"""Counts the spectra that pairs of antennas have together: the weights of visibilities."""

from collections.abc import Mapping

import numpy as np

from .x_settings import PRODUCTS

N_POLS = 2


class PairedSpectra:
    """Spectra of which each pair of antennas and polarisations has all samples. Whole batches cost nothing.

    Args:
        n_antennas: heaps of a batch.
        spectra_per_heap: fewer than 2^24, to which float32 counts.
    """

    def __init__(self, n_antennas: int, spectra_per_heap: int) -> None:
        self._n_antennas, self._n_spectra = n_antennas, spectra_per_heap
        self._j, self._i = np.tril_indices(n_antennas)
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._n_whole = 0  # spectra that all have
        self._others: np.ndarray | None = None  # those of other batches, int64 [antenna and pol, antenna and pol]

    def add(self, present: np.ndarray, holes: Mapping[tuple[int, int], np.ndarray]) -> None:
        """Add batches: bool [n_batches, n_antennas] says which heaps came, and ``holes`` as ``Batches`` has them."""
        lacks = np.asarray(~present.all(axis=1))
        lacks[[batch for batch, _ in holes]] = True
        self._n_whole += self._n_spectra * int(np.count_nonzero(~lacks))
        if not lacks.any():
            return
        n = N_POLS * self._n_antennas
        if self._others is None:
            self._others = np.zeros((n, n), np.int64)
        by_batch: dict[int, list[int]] = {batch: [] for batch in np.flatnonzero(lacks).tolist()}
        for batch, antenna in holes:
            by_batch[batch].append(antenna)
        for batch, antennas in by_batch.items():
            if antennas:
                flags = np.repeat(present[batch], N_POLS)[:, np.newaxis] * np.ones(self._n_spectra, np.float32)
                for antenna in antennas:
                    flags[N_POLS * antenna : N_POLS * (antenna + 1)] = holes[batch, antenna].T
                self._others += (flags @ flags.T).astype(np.int64)
        without = present[[batch for batch, antennas in by_batch.items() if not antennas]]
        came = np.repeat(without, N_POLS, axis=1).astype(np.float32)
        self._others += self._n_spectra * (came.T @ came).astype(np.int64)

    def weights(self) -> np.ndarray:
        """Returns how many spectra each product has: uint32 [n_baselines, 4].

        Baselines are ordered as ``correlate`` has them: antennas (j, i) with i <= j, i fastest; and products aa, ba,
        ab, bb of the polarisations (a, b) of antenna i and those of antenna j.
        """
        found = np.full((len(self._i), PRODUCTS), self._n_whole, np.int64)
        if self._others is not None:
            for product in range(PRODUCTS):
                q, p = divmod(product, N_POLS)
                found[:, product] += self._others[N_POLS * self._i + p, N_POLS * self._j + q]
        return found.astype(np.uint32)
