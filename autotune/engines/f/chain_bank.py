"""A filter bank of three stages: pfb_fir, a Fourier transform and postproc, with spectra in memory between them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..corrections.gains import SentGains
from ..machine.backend import DeviceArray
from ..machine.staging import Staging
from ..streams.samples import SampleInfo
from .plan import Batch, Run, ranges
from .sample_buffers import LoadedChunk
from .voltage_buffers import BandSettings, BankParts, Voltages

MOST_RUNS = 256  # offsets of so many runs go to the device together
N_LENGTHS = 4096  # lengths of runs whose problems stay cached
N_CUTS = 64  # parts of buffers, by their gains, whose views stay cached


def stages(info: SampleInfo, settings: BandSettings) -> dict[str, Mapping[str, Any]]:
    """Returns the fields of each kernel of the chain, by its name."""
    n_channels, n_pols = settings.n_channels, info.n_pols
    n_spectra = settings.heaps_per_batch * settings.spectra_per_heap
    filtering = {"taps": len(settings.weights), "sample_bits": info.sample_bits, "n_spectra": n_spectra}
    quantising = {
        "nyquist": 0 if info.is_complex else 1,
        "bits": settings.bits,
        "nibbles": settings.nibbles,
        "layout": "batches",
        "spectra_per_heap": settings.spectra_per_heap,
        "n_receivers": 1,
        "n_heaps": settings.heaps_per_batch,
    }
    shared = {"n_channels": n_channels, "n_pols": n_pols}
    return {"pfb_fir": shared | filtering, "postproc": shared | quantising}


class ChainBank:
    """Implements ``filter_bank.FilterBank``: one launch filters each run, and batches are made from the results."""

    def __init__(self, parts: BankParts) -> None:
        self._info, self._settings, self._gains, self._stream = parts.info, parts.settings, parts.gains, parts.stream
        info, settings, kernels, backend = parts.info, parts.settings, parts.bay.kernels, parts.bay.backend
        shape = settings.shape(info)
        n, n_pols, n_channels, length = shape.spectra_per_batch, info.n_pols, settings.n_channels, shape.step
        self._heap_samples = settings.spectra_per_heap * length * parts.decimation
        self._weights = settings.weights_on(backend, parts.stream, info.is_complex)
        self._filtered = backend.empty((n_pols, n, length), np.complex64 if info.is_complex else np.float32)
        n_made = n_channels if info.is_complex else n_channels + 1
        self._spectra = backend.empty((1, n_pols, n, n_made), np.complex64)
        self._sent_gains = SentGains(backend, parts.stream, n_channels, n_pols)
        offsets = backend.empty((MOST_RUNS, n_pols), np.int64)
        self._offsets = [offsets[place] for place in range(MOST_RUNS)]  # the offsets of each run
        self._first_offsets = [offsets[:n] for n in range(MOST_RUNS + 1)]
        self._turns = backend.empty((2, n, n_pols), np.float32)  # delays and phases
        self._no_turns = self._turns[:0]
        self._sent = Staging(backend, ((MOST_RUNS, n_pols), np.int64), ((2, n, n_pols), np.float32))
        of = stages(info, settings)
        self._filter, most = kernels.launcher("pfb_fir", **of["pfb_fir"])
        self._filter_problem = lru_cache(maxsize=N_LENGTHS)(
            lambda n, n_samples: replace(most, n_spectra=n, n_samples=n_samples)
        )
        self._quantise, whole = kernels.launcher("postproc", **of["postproc"])
        self._quantise_problem = lru_cache(maxsize=N_CUTS)(lambda n: replace(whole, n_heaps=n))
        self._gains_on_device = self._sent_gains.array[np.newaxis]
        self._part = lru_cache(maxsize=N_CUTS)(
            partial(heap_arrays, self._spectra, self._turns, settings.spectra_per_heap)
        )
        self._transform = backend.fourier(length, n_pols * n, info.is_complex)

    def make(self, runs: Sequence[Run], batch: Batch | None, loaded: LoadedChunk | None, buffer: Voltages) -> None:
        """Filter spectra into their places. Transform and quantise those of ``batch``, if it has a heap to make."""
        finished = batch if batch is not None and buffer.heaps.any() else None
        parts = [runs[begin : begin + MOST_RUNS] for begin in range(0, len(runs), MOST_RUNS)] or [[]]
        for some in parts:
            self._filter_some(some, finished if some is parts[-1] else None, loaded, buffer)
        if finished is None:
            return
        for heap in buffer.with_holes:  # zeros stay zeros in the transform
            begin = heap * self._settings.spectra_per_heap
            for pol in range(self._info.n_pols):
                for first, end in ranges(~buffer.present[heap, :, pol]):
                    self._stream.zero(self._filtered[pol, begin + first : begin + end])
        self._transform(self._spectra[0], self._filtered, self._stream)
        for first, n in self._gains.ranges(buffer.time, len(buffer.heaps), self._heap_samples):
            self._sent_gains.send(*self._gains.at(buffer.time + first * self._heap_samples))
            self._post_process(buffer, first, n)

    def _filter_some(
        self, runs: Sequence[Run], finished: Batch | None, loaded: LoadedChunk | None, buffer: Voltages
    ) -> None:
        """Filters up to MOST_RUNS runs. Sends their offsets, with the delays and phases of a ``finished`` batch."""
        if not runs and finished is None:
            return
        offsets, turns = self._sent.arrays()
        if finished is not None:
            np.multiply(finished.fine, 2 if self._info.is_complex else 1, out=turns[0])
            turns[1] = finished.phase
        if loaded is not None:
            for pinned, run in zip(offsets, runs, strict=False):
                pinned[...] = [first - loaded.zero for first in run.first]
        self._sent.send(self._stream, self._first_offsets[len(runs)], self._turns if finished else self._no_turns)
        for place, run in enumerate(runs):
            assert loaded is not None
            arrays = {
                "filtered": self._filtered[:, run.place : run.place + run.n],
                "samples": loaded.rows,
                "weights": self._weights,
                "offsets": self._offsets[place],
            }
            if not self._info.is_complex:
                arrays["total_power"] = buffer.total_power
            self._filter(self._filter_problem(run.n, loaded.n_samples), arrays, {}, self._stream)

    def _post_process(self, buffer: Voltages, first: int, n: int) -> None:
        arrays = {**self._part(buffer, first, n), "gains": self._gains_on_device}
        self._quantise(self._quantise_problem(n), arrays, {}, self._stream)


def heap_arrays(
    spectra: DeviceArray, turns: DeviceArray, spectra_per_heap: int, buffer: Voltages, first: int, n: int
) -> dict[str, DeviceArray]:
    """Returns the arrays of ``n`` heaps of a buffer for postproc."""
    heaps, some = slice(first, first + n), slice(first * spectra_per_heap, (first + n) * spectra_per_heap)
    return {
        "voltages": buffer.voltages[heaps],
        "saturated": buffer.saturated[heaps],
        "spectra": spectra[:, :, some],
        "delays": turns[:1, some],
        "phases": turns[1:, some],
    }
