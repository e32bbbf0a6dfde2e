"""The filter bank of a band, with delays, transform, gains and quantisation, and the choice among three of them.

``chain_bank`` runs pfb_fir, a Fourier transform and postproc. ``channelise_bank`` runs the kernel channelise, which
does the work of all three without spectra in memory. On host ``numpy_bank`` does the work without kernels.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ...core.errors import UsageError
from ...core.units import seconds_text
from ..kernels.choice import CHAIN, CHANNELISE, Kernels
from ..machine.backend import Backend
from ..streams.samples import SampleInfo
from .chain_bank import ChainBank, stages
from .channelise_bank import ChanneliseBank, fields_of
from .numpy_bank import NumpyBank
from .plan import Batch, Run
from .sample_buffers import LoadedChunk
from .voltage_buffers import BandSettings, BankParts, Voltages

TIMED_TRANSFORMS = 3


class FilterBank(Protocol):
    """An object that makes the voltages of one batch after the other."""

    def make(self, runs: Sequence[Run], batch: Batch | None, loaded: LoadedChunk | None, buffer: Voltages) -> None:
        """Take the samples of some spectra of one batch, and finish the batch if it is given.

        Then all heaps of the batch are in ``buffer.voltages``, with 0 for missing spectra, and its counts are added to
        ``saturated`` and ``total_power``. ``loaded``: the samples; None without runs.
        """


def filter_bank(parts: BankParts) -> FilterBank:
    """Returns the requested filter bank, or the one that should be faster. It tells the choice and the reason."""
    bay, info, settings = parts.bay, parts.info, parts.settings

    def decide() -> tuple[type[NumpyBank] | type[ChanneliseBank] | type[ChainBank], str]:
        of = f"filter bank of {settings.n_channels} channels{' of complex samples' if info.is_complex else ''}"
        if bay.kernels.uses_numpy:
            return NumpyBank, f"{of}: NumPy; as always on host"
        is_one, why = uses_channelise(bay.backend, bay.kernels, info, settings)
        if is_one:
            return ChanneliseBank, f"{of}: channelise; {why}"
        return ChainBank, f"{of}: pfb_fir, FFT and postproc; {why}"

    bank = bay.kernels.decided(frozenset(fields_of(info, settings).items()), decide)
    return bank(parts)


def uses_channelise(backend: Backend, kernels: Kernels, info: SampleInfo, settings: BandSettings) -> tuple[bool, str]:
    """Returns whether channelise is used, and why."""
    if kernels.filter_bank == CHAIN:
        return False, "as asked for"
    is_asked = kernels.filter_bank == CHANNELISE
    if not is_asked and backend.device.kind == "host":
        return False, "as always with kernels on host"
    try:
        alone = kernels.expected_time("channelise", **fields_of(info, settings))
    except UsageError as error:
        return False, f"channelise cannot be used: {error}"
    if is_asked:
        return True, "as asked for"
    if alone is None:
        return False, "no time of channelise is known here"
    expected = {name: kernels.expected_time(name, **fields) for name, fields in stages(info, settings).items()}
    if unknown := [name for name, time in expected.items() if time is None]:
        return False, f"no time of {' and '.join(unknown)} is known here to compare that of channelise with"
    times = {name: time for name, time in expected.items() if time is not None}
    chain, parts = sum(time.seconds for time in times.values()), [f"{name} {time}" for name, time in times.items()]
    if alone.seconds >= chain:
        transform = transform_s(backend, info, settings)
        chain += transform
        parts.append(f"FFT {seconds_text(transform)} (timed now)")
    else:
        parts.append("plus an FFT")
    return (
        alone.seconds < chain,
        f"a batch takes channelise {alone}, the chain {seconds_text(chain)}: {', '.join(parts)}",
    )


def transform_s(backend: Backend, info: SampleInfo, settings: BandSettings) -> float:
    """Returns the seconds of a batch's transform, measured now, since no records have it."""
    shape = settings.shape(info)
    n_rows, length = info.n_pols * shape.spectra_per_batch, shape.step
    samples = backend.empty((n_rows, length), np.complex64 if info.is_complex else np.float32)
    spectra = backend.empty((n_rows, settings.n_channels + (not info.is_complex)), np.complex64)
    transform, stream = backend.fourier(length, n_rows, info.is_complex), backend.stream()
    events = []
    for _ in range(1 + TIMED_TRANSFORMS):  # the first one fills a library's caches
        transform(spectra, samples, stream)
        events.append(stream.record(is_timed=True))
    events[-1].wait()
    return events[-1].seconds_since(events[0]) / TIMED_TRANSFORMS
