"""How an engine runs: on what device, with which kernels, and who is told of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ...core.errors import UsageError
from ...devices import find_device
from ..files.reading import Tell
from ..kernels.choice import AUTO, Kernels
from ..machine.backend import Backend
from ..machine.gpu_backend import GpuBackend
from ..machine.host_backend import HostBackend
from ..run.counters import FCounters
from ..streams.samples import SampleInfo

HOST_CHUNK, GPU_CHUNK = 1 << 20, 1 << 26  # samples of each polarisation, at most
LEAST_CHUNK = 1 << 12
PINNED_BYTES = 1 << 32  # that chunks take in pinned memory, about
N_CHUNKS = 4  # of each antenna

Report = Callable[[str, float | None], None]


def no_report(line: str, share: float | None) -> None:
    """Takes progress and shows nothing."""


def share_taken(n_samples: Sequence[int | None], counters: Sequence[FCounters]) -> float | None:
    """Returns the share of all antennas' samples that engines took, or None where their number is not known."""
    known = [n for n in n_samples if n]
    if len(known) < len(n_samples):
        return None
    return sum(each.samples_in for each in counters) / sum(known)


@dataclass(frozen=True)
class Running:
    """The way in which an engine runs.

    ``package``: what ``autotune emit`` wrote, whose configs are used; else those of ``results``, a folder of recorded
    sweeps; on a GPU they predict what they do not have; else each kernel's default.
    ``tune``: "quick" tunes first what neither has.
    ``filter_bank``: "chain" or "channelise"; "auto" takes what they expect to be faster (docs/engines-kernels.md).
    ``device``: auto (a GPU if there is one), host, cuda or cuda:1.
    ``chunk``: samples of each polarisation that go to the device together; None: as many as suit the device.
    ``tell``: takes lines about what was chosen.
    ``report``: takes a line of progress now and then, and the share of the samples that was taken, if that is known.
    """

    package: str | Path | None = None
    results: str | Path | None = None
    tune: str | None = None
    filter_bank: str = AUTO
    device: str = "auto"
    chunk: int | None = None
    tell: Tell = field(default=lambda text: None, repr=False)
    report: Report = field(default=no_report, repr=False)

    @cached_property
    def backend(self) -> Backend:
        """Returns the device. Raises UsageError when it is not here, or is another kind of device."""
        target = find_device(self.device)
        if target.kind == "host":
            return HostBackend()
        if target.kind != "cuda":
            raise UsageError(f"engines run on cuda and on host, not on {target.kind}")
        return GpuBackend(int(target.identifier.partition(":")[2] or 0))

    def kernels(self) -> Kernels:
        """Returns what chooses the configs of kernels."""
        known = {"package": self.package, "results": self.results}
        return Kernels(self.backend, self.tell, **known, tune=self.tune, filter_bank=self.filter_bank)

    def chunk_samples(self, infos: Sequence[SampleInfo]) -> int:
        """Returns the samples of each polarisation that go to the device together.

        The larger, the higher the rate, up to 2^26 on a GPU; chunks of all antennas are to fit into 4 GiB.

        Raises:
            UsageError: when ``chunk`` is below 1.
        """
        if self.chunk is not None:
            if self.chunk < 1:
                raise UsageError(f"chunks of {self.chunk} samples: there must be 1 or more")
            return self.chunk
        chunk = GPU_CHUNK if isinstance(self.backend, GpuBackend) else HOST_CHUNK
        bytes_each = sum(info.n_pols * info.sample_bits / 8 for info in infos) * N_CHUNKS
        longest = max((info.n_samples for info in infos if info.n_samples), default=chunk)
        while chunk > LEAST_CHUNK and (chunk * bytes_each > PINNED_BYTES or chunk >= 2 * longest):
            chunk //= 2
        return chunk
