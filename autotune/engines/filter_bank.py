"""The filter bank of a band: delays, transform, gains and quantisation included. There are two, and a choice of them.

``chain_bank`` runs pfb_fir, a Fourier transform and postproc, ``channelise_bank`` the kernel channelise, which does the
work of all three without spectra in memory.
"""

from collections.abc import Sequence
from typing import Protocol

from ..core.errors import UsageError
from ..core.units import seconds
from .backend import Backend, Stream
from .chain_bank import ChainBank, stages
from .channelise_bank import ChanneliseBank, fields_of
from .choice import CHAIN, CHANNELISE, Kernels
from .f_plan import Batch, Run
from .gains import Gains
from .sample_buffers import Loaded
from .stream import SampleInfo
from .voltages import BandSettings, Voltages


class FilterBank(Protocol):
    """Makes the voltages of one batch after the other."""

    def filter(self, runs: Sequence[Run], loaded: Loaded, buffer: Voltages) -> None:
        """Take the samples of some spectra of a batch, all of it in one buffer; total_power is added to."""

    def finish(self, batch: Batch, buffer: Voltages) -> None:
        """Let the voltages of a batch be in the buffer, those of whole heaps at least; saturated is added to."""


def filter_bank(
    backend: Backend,
    kernels: Kernels,
    info: SampleInfo,
    settings: BandSettings,
    gains: Gains,
    stream: Stream,
    unit: int,
) -> FilterBank:
    """Returns the filter bank that ``kernels`` ask for, or that is known to be the faster one; tells which, and why."""

    def decide() -> tuple[bool, str]:
        is_one, why = _choice(backend, kernels, info, settings)
        what = "channelise" if is_one else "pfb_fir, FFT and postproc"
        of = " of complex samples" if info.is_complex else ""
        return is_one, f"filter bank of {settings.n_channels} channels{of}: {what}; {why}"

    asked = frozenset(fields_of(info, settings).items())
    bank = ChanneliseBank if kernels.decided(asked, decide) else ChainBank
    return bank(backend, kernels, info, settings, gains, stream, unit)


def _choice(backend: Backend, kernels: Kernels, info: SampleInfo, settings: BandSettings) -> tuple[bool, str]:
    """Returns whether channelise is used, and why."""
    if kernels.filter_bank == CHAIN:
        return False, "as asked for"
    is_asked = kernels.filter_bank == CHANNELISE
    if not is_asked and backend.device.kind == "host":
        return False, "as always on host"
    try:
        alone = kernels.expected_s("channelise", **fields_of(info, settings))
    except UsageError as error:
        return False, f"channelise cannot be used: {error}"
    if is_asked:
        return True, "as asked for"
    if alone is None:
        return False, "no time of channelise is known here"
    known = {name: kernels.expected_s(name, **fields) for name, fields in stages(info, settings).items()}
    times = [time for time in known.values() if time is not None]
    if len(times) < len(known):
        unknown = " and ".join(name for name, time in known.items() if time is None)
        return False, f"no time of {unknown} is known here to compare that of channelise with"
    # Records have no transform: what is known of the chain is less than it takes.
    told = f"{seconds(alone)} a batch by what is known, the chain without its FFT {seconds(sum(times))}"
    return alone < sum(times), f"channelise takes {told}"
