"""A filter bank in NumPy on the host's cores. It computes what the kernels do, in pieces that stay in a cache.

The sums of the filter, the transform and the rotation are float32, as in the kernels, but round differently in a few
places: a part of a voltage may differ by 1 where it lies between two integers. Counts of power are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import local

import numpy as np

from ..machine.host_backend import HostBackend
from ..machine.host_samples import sum_of_squares, unpack_floats
from ..streams.voltages import REAL_LOW
from .batch_gains import BatchGains
from .channelise_bank import neighbours
from .plan import Batch, Run
from .sample_buffers import LoadedChunk
from .voltage_buffers import BankParts, Voltages

PIECE = 1 << 17  # about the samples in a piece, whose spectra take 512 KiB
LEAST_SPECTRA = 16  # a piece has at least so many spectra, even long ones
FINE = 64  # channels in the finer of the two tables of a spectrum's rotations


@dataclass(frozen=True)
class PieceOfBatch:
    """Consecutive spectra of one polarisation within a heap, with the same gains."""

    pol: int
    begin: int  # places in the batch
    end: int
    gains: np.ndarray  # complex64 [n_channels]
    runs: Sequence[Run]  # the runs with its spectra, and maybe others of the batch
    loaded: LoadedChunk
    buffer: Voltages


@dataclass(frozen=True)
class Scratch:
    """The working memory of a thread."""

    samples: np.ndarray  # float32 [n + taps - 1, step], for real samples
    filtered: np.ndarray  # float32 [n, 2 C], and complex64 [n, C] afterwards
    spectra: np.ndarray  # complex64 [n, channels of the transform]
    codes: np.ndarray  # int8 [n, C, 2]


class NumpyBank:
    """Implements ``filter_bank.FilterBank``: voltages are made as soon as their samples come.

    A batch uses the gains that are set when its first spectra are made, as in ``channelise_bank``.
    """

    def __init__(self, parts: BankParts) -> None:
        backend, info, settings = parts.bay.backend, parts.info, parts.settings
        assert isinstance(backend, HostBackend)
        self._info, self._settings, self._workers = info, settings, backend.workers
        self._step = settings.shape(info).step
        weights = settings.weights_on(backend, parts.stream, info.is_complex)
        self._weights = np.repeat(weights, 2, axis=1) if info.is_complex else weights  # one for each part
        self._n = min(max(LEAST_SPECTRA, PIECE // self._step), settings.spectra_per_heap)
        self._gains = BatchGains(parts.gains, settings, self._step, parts.decimation)
        self._local = local()

    def make(self, runs: Sequence[Run], batch: Batch | None, loaded: LoadedChunk | None, buffer: Voltages) -> None:
        """Make the voltages of all spectra that came, in their places in the batch."""
        pieces = []
        for some in neighbours(runs):
            assert loaded is not None
            for begin, end, gains in self._cuts(some):
                pieces += [
                    PieceOfBatch(pol, begin, end, of_pol, some, loaded, buffer) for pol, of_pol in enumerate(gains)
                ]
        for piece, (saturated, power) in zip(pieces, self._workers.each(self._make, pieces), strict=True):
            buffer.saturated[piece.begin // self._settings.spectra_per_heap, 0, piece.pol] += saturated
            buffer.total_power[piece.pol] += power
        for heap in buffer.with_holes if batch is not None else ():
            buffer.voltages[heap, 0, :, ~buffer.present[heap].any(axis=1)] = 0

    def _cuts(self, runs: Sequence[Run]) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yields begin and end of each piece in the batch, and its scaled gains: complex64 [n_pols, n_channels].

        A missing polarisation has the gain 0, and so its voltages are 0.
        """
        length = self._settings.spectra_per_heap
        for gains in self._gains.of(runs[0].batch):
            begin, end = max(runs[0].place, gains.begin), min(runs[-1].place + runs[-1].n, gains.end)
            is_present = np.array(runs[0].there)[:, np.newaxis]
            values = np.ascontiguousarray(gains.values.T * is_present * np.float32(self._step))
            while begin < end:
                until = min(end, begin + self._n, (begin // length + 1) * length)
                yield begin, until, values
                begin = until

    # ------------------------------------------------------------------ one piece
    def _make(self, piece: PieceOfBatch) -> tuple[int, int]:
        """Makes the voltages of a piece. Returns the number of saturated ones, and the power of its samples."""
        n, scratch = piece.end - piece.begin, self._scratch()
        filtered, spectra = scratch.filtered[:n], scratch.spectra[:n]
        power = self._filter(piece, filtered)
        with np.errstate(all="ignore"):  # samples may be NaN, and sums may overflow
            # "forward" scales by 1 / step, which gains undo. Other scales make NumPy transform in float64.
            if self._info.is_complex:
                np.fft.fft(filtered.view(np.complex64), axis=1, norm="forward", out=spectra)
            else:
                np.fft.rfft(filtered, axis=1, norm="forward", out=spectra)
            kept = spectra[:, : self._settings.n_channels]
            voltages = np.multiply(kept, piece.gains, out=filtered.view(np.complex64))
            self._rotate(piece, voltages)
            saturated = self._quantise(voltages, scratch.codes[:n])
        self._place(piece, scratch.codes[:n])
        return saturated, power

    def _filter(self, piece: PieceOfBatch, filtered: np.ndarray) -> int:
        """Fills float32 [n, weights of a row] with weighted sums of samples. Returns the power of real samples."""
        power, taps = 0, len(self._weights)
        for run in piece.runs:
            begin, end = max(piece.begin, run.place), min(piece.end, run.place + run.n)
            if begin >= end:
                continue
            first = run.first[piece.pol] - piece.loaded.zero + (begin - run.place) * self._step
            rows = self._rows(piece, first, end - begin + taps - 1)
            windows = np.lib.stride_tricks.sliding_window_view(rows, taps, axis=0)  # [spectrum, place in a row, tap]
            np.einsum("nct,tc->nc", windows, self._weights, out=filtered[begin - piece.begin : end - piece.begin])
            if not self._info.is_complex:
                power += sum_of_squares(rows[taps - 1 :], self._info.sample_bits)
        return power

    def _rows(self, piece: PieceOfBatch, first: int, n: int) -> np.ndarray:
        """Returns samples from ``first`` on in a chunk's row: float32 [n, step], or [n, 2 step] for complex ones."""
        row = piece.loaded.rows[piece.pol]
        if self._info.is_complex:
            return np.asarray(row[first : first + n * self._step].view(np.float32).reshape(n, -1))
        rows = self._scratch().samples[:n]
        unpack_floats(row, self._info.sample_bits, first, rows.reshape(-1))
        return rows

    def _rotate(self, piece: PieceOfBatch, voltages: np.ndarray) -> None:
        """Rotates complex64 [n, C] in place, by the fine delays and the phases."""
        place = slice(piece.begin, piece.end)
        batch = piece.runs[0].batch
        delays, phases = batch.fine[place, piece.pol], batch.phase[place, piece.pol]
        if not (delays.any() or phases.any()):
            return
        n_channels = voltages.shape[1]
        slopes = delays.astype(np.float64)[:, np.newaxis] * (-np.pi * (2 if self._info.is_complex else 1) / n_channels)
        firsts = np.arange(0, n_channels, FINE) - n_channels / 2
        coarse = np.exp(1j * (phases.astype(np.float64)[:, np.newaxis] + slopes * firsts)).astype(np.complex64)
        fine = np.exp(1j * (slopes * np.arange(FINE))).astype(np.complex64)
        for number, first in enumerate(range(0, n_channels, FINE)):
            some = voltages[:, first : first + FINE]
            some *= coarse[:, number, np.newaxis] * fine[:, : some.shape[1]]

    def _quantise(self, voltages: np.ndarray, codes: np.ndarray) -> int:
        """Rounds complex64 [n, C], in place, to int8 [n, C, 2]. Returns the number of clipped voltages."""
        most = 2 ** (self._settings.bits - 1) - 1
        parts = voltages.view(np.float32)
        np.rint(parts, out=parts)
        n_saturated = 0
        if not (parts.max() <= most and parts.min() >= -most):  # NaN fails both
            beyond = ~(np.abs(parts) <= most)
            n_saturated = int(np.count_nonzero(beyond[:, 0::2] | beyond[:, 1::2]))
            np.fmin(np.fmax(parts, -most, out=parts), most, out=parts)
        codes.reshape(parts.shape)[...] = parts
        return n_saturated

    def _place(self, piece: PieceOfBatch, codes: np.ndarray) -> None:
        """Puts int8 [n, C, 2] into the heap, transposed."""
        heap, first = divmod(piece.begin, self._settings.spectra_per_heap)
        to = piece.buffer.voltages[heap, 0, :, first : first + len(codes), piece.pol]
        if self._settings.bits == 8:
            to.view(np.int16)[..., 0] = codes.view(np.int16)[..., 0].T
            return
        real, imaginary = codes[..., 0], codes[..., 1]
        low, high = (real, imaginary) if self._settings.nibbles == REAL_LOW else (imaginary, real)
        to[...] = ((low & 15) | (high << 4)).T

    def _scratch(self) -> Scratch:
        """Returns the calling thread's working memory, which stays in a cache because it is used again."""
        if not hasattr(self._local, "scratch"):
            n, n_channels = self._n, self._settings.n_channels
            n_rows = 0 if self._info.is_complex else n + len(self._weights) - 1
            self._local.scratch = Scratch(
                np.empty((n_rows, self._step), np.float32),
                np.empty((n, 2 * n_channels), np.float32),
                np.empty((n, n_channels + (not self._info.is_complex)), np.complex64),
                np.empty((n, n_channels, 2), np.int8),
            )
        scratch: Scratch = self._local.scratch
        return scratch
