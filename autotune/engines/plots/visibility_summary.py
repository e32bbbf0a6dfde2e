"""Sums any number of dumps for a picture of visibilities, in a sink that uses constant memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import dist, sqrt

import numpy as np

from ...core.errors import UsageError
from ..streams.visibilities import VisibilityInfo
from .rows import Bins, Rows, ratio

PARALLEL = slice(0, 4, 3)  # aa and bb, of the products aa, ba, ab, bb
FOLLOWED = [0, 3, 1, 2]  # parallel hands, aa and bb, in front of cross hands, ba and ab
POLS_OF = [0, 1, 1, 0], [0, 1, 0, 1]  # the polarisations of antennas i and j in them
MOST_ROWS, MOST_SPECTRUM_BINS, MOST_BINS = 256, 1024, 256
BLOCK = 1 << 18  # products in one step of the coherence: their floats stay in the cache


@dataclass(frozen=True)
class Baseline:
    """The antennas i <= j of a baseline, and its length if their positions are known."""

    i: int
    j: int
    length_m: float | None = None

    @property
    def number(self) -> int:
        """Returns the baseline's place in a dump."""
        return self.j * (self.j + 1) // 2 + self.i


class VisibilitySummary:
    """Sums of all antennas' spectra, all baselines' coherence, and some baselines over time. A ``VisibilitySink``.

    Means are over the spectra that came, as weights count them; a product whose weight is 0 in a dump is left out. All
    sums except those of coherence are exact.

    Args:
        baselines: pairs (i, j) to follow over time; None takes ``n_baselines`` of them, from the shortest to the
            longest, or the first ones if a position is not known.

    Raises:
        UsageError: for a baseline whose antennas do not exist.
    """

    def __init__(
        self, info: VisibilityInfo, baselines: Sequence[tuple[int, int]] | None = None, n_baselines: int = 6
    ) -> None:
        self.info, n = info, len(info.antennas)
        self.baselines = _spread(info, n_baselines) if baselines is None else _baselines_of(info, baselines)
        self.fine, self.bins = Bins(info.n_channels, MOST_SPECTRUM_BINS), Bins(info.n_channels, MOST_BINS)
        self._j, self._i = np.tril_indices(n)  # the antennas of all baselines, in their order
        self._numbers = np.array([each.number for each in self.baselines], int)
        self._autos = np.flatnonzero(self._i == self._j)
        self.n_dumps, self.n_clipped = 0, 0
        self.spectra_there = np.zeros((n, 2), np.int64)  # spectra in the antennas' own products, aa and bb
        k = len(self.baselines)
        self.dumps = Rows(info.dump_samples, (1,), MOST_ROWS)
        # weights of a baseline's products, and of its two antennas'
        self.weights = Rows(info.dump_samples, (k, 4, 3), MOST_ROWS)
        self._rows = Rows(info.dump_samples, (len(self.bins.begins), k, 2, 4), MOST_ROWS)
        self._spectra = np.zeros((len(self.fine.begins), k, 4, 4), np.int64)
        self._powers = np.zeros((len(self.fine.begins), n, 2), np.int64)
        self._coherence = np.zeros((len(self._i), 2))
        self._n_coherence = np.zeros((len(self._i), 2), np.int64)

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Take a dump; see ``VisibilitySink``."""
        if self.info.n_pols == 1:
            visibilities, weights = _with_another(visibilities, weights)
        time = np.array([timestamp], np.int64)
        n_spectra = weights[:, PARALLEL].astype(np.int64)  # [n_baselines, 2]
        own = n_spectra[self._autos]
        autos = visibilities[..., 0][:, self._autos, PARALLEL].astype(np.int64)  # [C, n, 2]
        autos[:, own == 0] = 0
        self.n_dumps, self.n_clipped = self.n_dumps + 1, self.n_clipped + saturated
        self.spectra_there += own
        self._powers += self.fine.sums(autos, axis=0)
        self._follow(time, visibilities, autos, weights.astype(np.int64))
        self._compare(visibilities, autos, n_spectra)

    def close(self) -> None:
        return

    # ------------------------------------------------------------------ what is found
    def spectra(self) -> np.ndarray:
        """Returns the mean power of a channel in a dump, for aa and bb: float64 [n_fine, n_antennas, 2]."""
        n_dumps = self.spectra_there / self.info.dump_spectra
        return ratio(self._powers, self.fine.counts[:, np.newaxis, np.newaxis] * n_dumps)

    def coefficients(self) -> np.ndarray:
        """Returns correlation coefficients over all time: complex128 [n_fine, n_baselines, 4], of aa, bb, ba and ab.

        They are the mean of V_ij over the root of mean V_ii times mean V_jj; NaN where no data came.
        """
        return _coefficients(self._spectra, self.weights.values.sum(axis=0))

    def rows(self) -> np.ndarray:
        """Returns correlation coefficients for each row of time: complex128 [n_rows, n_bins, n_baselines, 2]."""
        return _coefficients(self._rows.values, self.weights.values[:, np.newaxis, :, :2])

    @property
    def times(self) -> np.ndarray:
        """Returns the middles of rows: float64 [n_rows], samples since the stream's zero."""
        return self._rows.times

    @property
    def row_samples(self) -> int:
        return self._rows.row_samples

    def coherence(self) -> np.ndarray:
        """Returns the rms of |V_ij| / sqrt(V_ii V_jj) over channels and dumps: float64 [n_antennas, n_antennas].

        Products aa are below the diagonal, bb above it. The diagonal and missing products are NaN.
        """
        n = len(self.info.antennas)
        coherence = np.full((n, n), np.nan)
        rms = np.sqrt(ratio(self._coherence, self._n_coherence))
        cross = self._i != self._j
        coherence[self._j[cross], self._i[cross]] = rms[cross, 0]
        coherence[self._i[cross], self._j[cross]] = rms[cross, 1]
        return coherence

    def noise_floor(self) -> float | None:
        """Returns the ``coherence`` of independent noise, 1 / sqrt(spectra in a dump); None if the channel width is not
        known.
        """
        n = self.info.dump_samples * self.info.channel_width_hz / self.info.antennas[0].sample_rate_hz
        return 1 / sqrt(n) if n >= 1 else None

    # ------------------------------------------------------------------ sums
    def _follow(self, time: np.ndarray, visibilities: np.ndarray, autos: np.ndarray, n_spectra: np.ndarray) -> None:
        """Adds the followed products: real and imaginary part, and the powers of both antennas.

        Rows of time have those of parallel hands only.
        """
        parts = np.empty((len(visibilities), len(self.baselines), 4, 4), np.int64)
        parts[..., :2] = visibilities[:, self._numbers][:, :, FOLLOWED]
        weights = np.empty((len(self.baselines), 4, 3), np.int64)
        weights[..., 0] = n_spectra[self._numbers][:, FOLLOWED]
        own = n_spectra[self._autos, PARALLEL]
        for end, pols in enumerate(POLS_OF, 1):
            antennas = [each.i if end == 1 else each.j for each in self.baselines]
            parts[..., end + 1], weights[..., end] = autos[:, antennas][..., pols], own[antennas][:, pols]
        lost = weights[..., 0] == 0
        parts[:, lost], weights[lost] = 0, 0
        self._spectra += self.fine.sums(parts, axis=0)
        self._rows.add(time, self.bins.sums(parts[:, :, :2], axis=0)[np.newaxis])
        self.weights.add(time, weights[np.newaxis])
        self.dumps.add(time, np.ones((1, 1), np.int64))

    def _compare(self, visibilities: np.ndarray, autos: np.ndarray, n_spectra: np.ndarray) -> None:
        """Adds |V_ij|^2 / (V_ii V_jj) of means, one block of channels at a time."""
        has_data, own = n_spectra > 0, n_spectra[self._autos]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(autos > 0, own / autos, 0).astype(np.float32)
        n_together = max(1, BLOCK // (4 * len(self._i)))
        for at in range(0, len(visibilities), n_together):
            some = slice(at, at + n_together)
            parts = visibilities[some][:, :, PARALLEL].astype(np.float32)
            weights = each[some][:, self._i] * each[some][:, self._j]
            squares = np.einsum("cbpr,cbpr->cbp", parts, parts)
            sums = np.einsum("cbp,cbp->bp", squares, weights)
            self._coherence += np.where(has_data, sums / np.square(np.maximum(n_spectra, 1, dtype=float)), 0)
            self._n_coherence += has_data * np.count_nonzero(weights, axis=0)


def _with_another(visibilities: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns a dump of one polarisation as a dump of two, the second of which is missing."""
    products = np.zeros((*visibilities.shape[:2], 4, 2), visibilities.dtype)
    products[:, :, :1] = visibilities
    return products, np.pad(weights, ((0, 0), (0, 3)))


def _coefficients(sums: np.ndarray, n_spectra: np.ndarray) -> np.ndarray:
    """Returns coefficients. ``sums``: real and imaginary part and two powers, int64 [..., 4], over [..., 3] spectra."""
    powers = np.sqrt(sums[..., 2].astype(float) * sums[..., 3])
    each = np.sqrt(n_spectra[..., 1].astype(float) * n_spectra[..., 2])
    return ratio((sums[..., 0] + 1j * sums[..., 1]) * each, powers * n_spectra[..., 0])


def _baseline(info: VisibilityInfo, i: int, j: int) -> Baseline:
    here, there = info.antennas[i].position_m, info.antennas[j].position_m
    return Baseline(i, j, None if here is None or there is None else dist(here, there))


def _baselines_of(info: VisibilityInfo, baselines: Sequence[tuple[int, int]]) -> tuple[Baseline, ...]:
    n = len(info.antennas)
    for i, j in baselines:
        if not 0 <= i < j < n:
            raise UsageError(f"there is no baseline ({i}, {j}): its antennas must be 0 <= i < j < {n}")
    return tuple(_baseline(info, i, j) for i, j in baselines)


def _spread(info: VisibilityInfo, most: int) -> tuple[Baseline, ...]:
    """Returns ``most`` baselines, spread from the shortest to the longest, or the first ones without positions."""
    n = len(info.antennas)
    every = [_baseline(info, i, j) for j in range(n) for i in range(j)]
    if len(every) <= most or any(each.length_m is None for each in every):
        some = every[:most]
    else:
        every.sort(key=lambda each: each.length_m or 0.0)
        some = [every[round(place)] for place in np.linspace(0, len(every) - 1, most)]
    return tuple(sorted(some, key=lambda each: each.length_m or 0.0))
