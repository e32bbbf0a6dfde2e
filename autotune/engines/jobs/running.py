"""The way in which an engine runs: the device, the kernels, and the functions that take messages and progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

from ...core.errors import UsageError
from ...devices import find_device
from ...system.limits import COUNT
from ...system.setting import Setting, check_settings
from ..files.losses import DataLoss
from ..files.reading import Tell
from ..kernels.choice import AUTO, FILTER_BANKS, Kernels
from ..machine.backend import Backend
from ..machine.gpu_backend import GpuBackend
from ..machine.host_backend import HostBackend
from ..run.counters import FCounters
from ..run.lent_chunks import N_CHUNKS
from ..streams.samples import SampleInfo

HOST_CHUNK, GPU_CHUNK = 1 << 20, 1 << 26  # samples of each polarisation: the largest chunks
LEAST_CHUNK = 1 << 12
PINNED_BYTES = 1 << 32  # chunks take about this much pinned memory

Report = Callable[[str, float | None], None]


def no_report(line: str, share: float | None) -> None:
    """Ignores a line of progress."""


def share_taken(n_samples: Sequence[int | None], counters: Sequence[FCounters]) -> float | None:
    """Returns the share of all antennas' samples that the engines took; None if the number of samples is not known."""
    counts = [n for n in n_samples if n]
    if len(counts) < len(n_samples):
        return None
    return sum(each.samples_in for each in counters) / sum(counts)


@dataclass(frozen=True)
class Running:
    """The way in which an engine runs.

    Where neither a package nor records know a problem, both predict a config on a GPU; otherwise a kernel runs its
    default. ``tell``: takes lines about the chosen kernels. ``report``: takes a line of progress now and then, and the
    share of the samples that were taken; None if unknown.
    """

    package: Annotated[str | Path | None, Setting("Take configs from this package, which `autotune emit` wrote.")] = (
        None
    )
    results: Annotated[
        Path | str | None,
        Setting("Take other configs from recorded sweeps in this folder. [default: results, if it exists]"),
    ] = None
    tune: Annotated[
        str | None,
        Setting(
            "quick: first tune the kernels that neither package nor records contain. first: try only a few promising "
            "configs of each, within seconds, and keep the fastest in the user's cache."
        ),
    ] = None
    filter_bank: Annotated[
        str,
        Setting(
            "How voltages are made from samples: chain (pfb_fir, FFT, postproc), channelise (one kernel), or auto: "
            "channelise where package or records predict that it is faster; on host, NumPy.",
            FILTER_BANKS,
        ),
    ] = AUTO
    device: Annotated[
        str, Setting("auto (a GPU if there is one), host, cuda, cuda:1, simulated, or an installed one.")
    ] = "auto"
    kernels_on_host: Annotated[
        bool,
        Setting("On host, run the CUDA kernels, translated to C++ with checks, in place of NumPy; this is slower."),
    ] = False
    chunk: Annotated[
        int | None,
        Setting("Samples of each polarisation that the device processes at a time.", COUNT, "up to 2^26; host: 2^20"),
    ] = None
    strict: Annotated[
        bool,
        Setting(
            "Fail, with exit code 1, if a recording is cut off or damaged, or frames of it are far out of order. The "
            "output is made all the same."
        ),
    ] = False
    tell: Tell = field(default=lambda text: None, repr=False)
    report: Report = field(default=no_report, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)

    def fails(self, losses: Sequence[DataLoss]) -> bool:
        """Returns whether recordings with these losses make a strict run fail."""
        return self.strict and not all(loss.is_harmless for loss in losses)

    @cached_property
    def backend(self) -> Backend:
        """Returns the backend of the device. Raises UsageError when it is not here, or is neither CUDA nor host."""
        target = find_device(self.device)
        if target.kind == "host":
            return HostBackend()
        if target.kind != "cuda":
            raise UsageError(f"engines run on cuda and on host, not on {target.kind}")
        return GpuBackend(int(target.identifier.partition(":")[2] or 0))

    def kernels(self) -> Kernels:
        """Returns the object that chooses the configs of kernels."""
        return Kernels(
            self.backend,
            self.tell,
            package=self.package,
            results=self.results,
            tune=self.tune,
            filter_bank=self.filter_bank,
            kernels_on_host=self.kernels_on_host,
        )

    def chunk_samples(self, infos: Sequence[SampleInfo]) -> int:
        """Returns the number of samples of each polarisation that go to the device together.

        Larger chunks run faster, up to 2^26 on a GPU. The chunks of all antennas should fit into 4 GiB.
        """
        if self.chunk is not None:
            return self.chunk
        chunk = GPU_CHUNK if isinstance(self.backend, GpuBackend) else HOST_CHUNK
        bytes_each = sum(info.n_pols * info.sample_bits / 8 for info in infos) * N_CHUNKS
        longest = max((info.n_samples for info in infos if info.n_samples), default=chunk)
        while chunk > LEAST_CHUNK and (chunk * bytes_each > PINNED_BYTES or chunk >= 2 * longest):
            chunk //= 2
        return chunk
