"""The settings of an X-engine, and the fields of its kernels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

PRODUCTS = 4  # polarisation products of a baseline
BYTES = 2 * 8  # a product's sum has two parts of 64 bits


@dataclass(frozen=True)
class XSettings:
    """The settings of an X-engine."""

    n_antennas: int
    n_channels: int
    spectra_per_heap: int
    batch_samples: int  # samples from one batch to the next
    accumulate: int  # batches of a dump
    batches_per_chunk: int = 1
    bits: int = 8
    n_slices: int | None = None  # partial sums of a channel, which a dump adds; None takes the fastest number
    n_buffers: int = 3  # buffers of visibilities: one is filled while others are copied out
    complete_dumps: bool = False  # whether a baseline has all of its data in a dump or none
    n_pols: int = 2  # places of polarisations in products; with one, other voltages are 0, and one product leaves
    rows: tuple[tuple[int, ...], ...] = ()  # rows of each antenna's voltages, by place; empty: in order
    alone: frozenset[int] = frozenset()  # antennas with one polarisation, whose row 1 is 0
    is_conjugate: bool = False  # whether voltages have their parts exchanged: device visibilities are conjugate

    @property
    def n_baselines(self) -> int:
        return self.n_antennas * (self.n_antennas + 1) // 2

    @property
    def n_products(self) -> int:
        """Returns the number of products of a baseline that leave the engine."""
        return self.n_pols**2

    def sources(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the device's product of each one that leaves, and whether both antennas have its polarisations.

        Both are [n_baselines, n_products], int and bool. 2 q + p is the product of antenna i's row p and j's row q.
        """
        rows = np.array(self.rows or [range(self.n_pols)] * self.n_antennas)
        has = np.ones(rows.shape, bool)
        has[list(self.alone)] = rows[list(self.alone)] == 0
        j, i = np.tril_indices(self.n_antennas)
        products = 2 * rows[j][:, :, np.newaxis] + rows[i][:, np.newaxis]
        possible = has[j][:, :, np.newaxis] & has[i][:, np.newaxis]
        return products.reshape(len(i), -1), possible.reshape(len(i), -1)

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Returns the shape of a chunk: int8 [batch, antenna, C, time, pol, 2]; at 4 bits without the last axis."""
        parts = () if self.bits == 4 else (2,)
        return (self.batches_per_chunk, self.n_antennas, self.n_channels, self.spectra_per_heap, 2, *parts)

    @property
    def batches_per_launch(self) -> int:
        """Returns the most batches of a launch of ``correlate``: those of a chunk, unless a dump has fewer."""
        return min(self.batches_per_chunk, self.accumulate)

    def dumps_of(self, n_chunks: int) -> int:
        """Returns the most dumps that so many chunks make at once, and two: one is written while another is made."""
        return -(-n_chunks * self.batches_per_chunk // self.accumulate) + 2

    @property
    def slice_bytes(self) -> int:
        """Returns the bytes of one slice of the accumulators, int64 [C, n_baselines, 4, 2]."""
        return self.n_channels * self.n_baselines * PRODUCTS * BYTES


def correlate_fields(settings: XSettings, n_slices: int) -> dict[str, Any]:
    """Returns the fields of ``correlate`` for a whole chunk, which one launch may take however long it is."""
    return {
        "bits": settings.bits,
        "layout": "batches",
        "n_receivers": settings.n_antennas,
        "n_times": settings.spectra_per_heap,
        "overwrites": False,
        "n_channels": settings.n_channels,
        "n_batches": settings.batches_per_chunk,
        "first_batch": 0,
        "n_used": 0,  # all, as in recorded sweeps
        "n_slices": n_slices,
    }


def accumulate_fields(settings: XSettings, n_slices: int) -> dict[str, Any]:
    """Returns the fields of ``accumulate``."""
    return {
        "n_accumulators": n_slices,
        "n_channels": settings.n_channels,
        "n_receivers": settings.n_antennas,
    }
