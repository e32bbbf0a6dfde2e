"""A filter bank of one kernel, channelise: spectra become voltages in their buffer as soon as their samples came."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from ..corrections.gains import SentGains
from ..machine.backend import DeviceArray
from ..machine.staging import Staging
from ..streams.samples import SampleInfo
from .batch_gains import BatchGains
from .plan import Batch, Run, ranges
from .sample_buffers import LoadedChunk
from .voltage_buffers import BandSettings, BankParts, Voltages

N_PLACES = 64  # parts of a batch, cut by chunks, whose views stay cached


def fields_of(info: SampleInfo, settings: BandSettings) -> Mapping[str, object]:
    """Returns the fields of the kernel."""
    return {
        "taps": len(settings.weights),
        "n_channels": settings.n_channels,
        "sample_bits": info.sample_bits,
        "n_pols": info.n_pols,
        "bits": settings.bits,
        "nibbles": settings.nibbles,
        "layout": "batches",
        "spectra_per_heap": settings.spectra_per_heap,
        "n_heaps": settings.heaps_per_batch,
    }


class ChanneliseBank:
    """Implements ``filter_bank.FilterBank``: one launch makes all consecutive spectra, whatever their delays.

    Launches are cut where spectra are missing and where gains change. A batch uses the gains that are set when its
    first spectra are made, so a heap has one set of gains. A lost polarisation gets the gain 0 while others are
    made; zeros are copied to spectra that all polarisations lack.
    """

    def __init__(self, parts: BankParts) -> None:
        self._info, self._settings, self._stream = info, settings, stream = parts.info, parts.settings, parts.stream
        shape, backend = settings.shape(info), parts.bay.backend
        self._gains = BatchGains(parts.gains, settings, shape.step, parts.decimation)
        n, n_pols = shape.spectra_per_batch, info.n_pols
        self._step, self._steps = shape.step, shape.step * np.arange(n)
        weights = settings.weights_on(backend, stream, info.is_complex)
        self._sent_gains = SentGains(backend, stream, settings.n_channels, n_pols)
        types = {"offsets": np.int64, "delays": np.float32, "phases": np.float32}
        of_spectra = {name: backend.empty((n, n_pols), dtype) for name, dtype in types.items()}
        self._sent = Staging(backend, *(((n, n_pols), dtype) for dtype in types.values()))
        self._make, most = parts.bay.kernels.launcher("channelise", **fields_of(info, settings))
        self._problem = lru_cache(maxsize=N_PLACES)(
            lambda first, n, n_samples: replace(most, first_spectrum=first, n_spectra=n, n_samples=n_samples)
        )
        shared = {"weights": weights, "gains": self._sent_gains.array, **of_spectra}
        self._arrays = lru_cache(maxsize=settings.n_buffers)(partial(launch_arrays, shared, info.is_complex))
        self._places = lru_cache(maxsize=N_PLACES)(
            lambda begin, end: [array[begin:end] for array in of_spectra.values()]
        )
        self._zeros = backend.empty(settings.heap_shape(n_pols), np.int8)
        stream.zero(self._zeros)

    def make(self, runs: Sequence[Run], batch: Batch | None, loaded: LoadedChunk | None, buffer: Voltages) -> None:
        """Make the voltages of all spectra that came, in their places in the batch."""
        self._make_runs(runs, loaded, buffer)
        for heap in buffer.with_holes if batch is not None else ():
            for first, end in ranges(~buffer.present[heap].any(axis=1)):
                self._stream.copy(buffer.voltages[heap, 0, :, first:end], self._zeros[:, first:end])

    def _make_runs(self, runs: Sequence[Run], loaded: LoadedChunk | None, buffer: Voltages) -> None:
        for some in neighbours(runs):
            assert loaded is not None
            begin, end, planned = some[0].place, some[-1].place + some[-1].n, some[0].batch
            place = slice(begin, end)
            offsets, delays, phases = (pinned[: end - begin] for pinned in self._sent.arrays())
            for run in some:
                to = slice(run.place - begin, run.place - begin + run.n)
                for pol, first in enumerate(run.first):
                    np.add(self._steps[: run.n], first - loaded.zero, out=offsets[to, pol])
            np.multiply(planned.fine[place], 2 if self._info.is_complex else 1, out=delays)
            phases[...] = planned.phase[place]
            self._sent.send(self._stream, *self._places(begin, end))
            self._launch(begin, end, some[0], loaded, buffer)

    def _launch(self, begin: int, end: int, run: Run, loaded: LoadedChunk, buffer: Voltages) -> None:
        arrays = {"samples": loaded.rows, **self._arrays(buffer)}
        # The kernel's definition expects each spectrum a step after the one before, within the samples of a row.
        most = loaded.n_samples // self._step - len(self._settings.weights) + 1
        for gains in self._gains.of(run.batch):
            for at in range(max(begin, gains.begin), min(end, gains.end), most):
                some = gains.values if all(run.there) else gains.values * run.there
                self._sent_gains.send((gains.number, run.there), some)
                n = min(most, end - at, gains.end - at)
                self._make(self._problem(at, n, loaded.n_samples), arrays, {}, self._stream)


def launch_arrays(shared: Mapping[str, DeviceArray], is_complex: bool, buffer: Voltages) -> dict[str, DeviceArray]:
    """Returns the arrays of a launch, without samples: those that all launches share, and those of a buffer."""
    arrays = {"voltages": buffer.voltages[:, 0], "saturated": buffer.saturated[:, 0], **shared}
    return arrays if is_complex else {"total_power": buffer.total_power, **arrays}


def neighbours(runs: Sequence[Run]) -> Iterator[Sequence[Run]]:
    """Yields groups of runs of one batch with the same polarisations, whose spectra follow each other."""
    cuts = [
        i
        for i, (one, other) in enumerate(pairwise(runs), 1)
        if one.place + one.n != other.place or one.there != other.there
    ]
    for begin, end in pairwise([0, *cuts, len(runs)] if runs else []):
        yield runs[begin:end]
