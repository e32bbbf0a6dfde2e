"""Sends an X-engine's visibilities as SPEAD heaps. Each heap is a dump of some channels."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import spead2
import spead2.send

from ...core.errors import UsageError
from ..streams.visibilities import VisibilityInfo
from .described import DescribedOutlet
from .endpoints import Endpoint
from .items import FLAVOUR, FREQUENCY, TIMESTAMP, XENG_RAW
from .memory_heap import IMMEDIATE, MemoryHeap
from .outlet import SendOptions, outlet

N_X_ITEMS = 3


class DumpOutlet(DescribedOutlet[MemoryHeap]):
    """A VisibilitySink that sends a heap for each dump.

    ``write`` returns when the kernel has the packets; they are spread over most of a dump's time.

    Args:
        first_channel: the engine's first channel in the whole band, which has ``n_channels``.
        transport: udp, ibv, tcp or inproc.
        is_paced: whether the packets of a heap are spread; otherwise they leave at once.
        sending: options; see ``outlet``.

    Raises:
        UsageError: when nothing can be sent to an address.
    """

    def __init__(
        self,
        info: VisibilityInfo,
        transport: str,
        to: Sequence[Endpoint] | Sequence[spead2.InprocQueue],
        *,
        first_channel: int = 0,
        n_channels: int | None = None,
        is_paced: bool = True,
        **sending: Unpack[SendOptions],
    ) -> None:
        if info.n_pols != 2:
            raise UsageError("dumps on the network have four products: antennas must have two polarisations")
        self._shape, self._first_channel = (info.n_channels, 4 * info.n_baselines, 2), first_channel
        dump_s = info.dump_samples / info.antennas[0].sample_rate_hz
        spread = (4 * int(np.prod(self._shape)), dump_s) if is_paced else None
        first, step = (each // info.n_channels for each in (first_channel, n_channels or info.n_channels))
        sender = outlet(transport, to, n_items=N_X_ITEMS, first=first, step=step, spread=spread, **sending)
        self.n_dumps = 0
        super().__init__(sender, self._described())

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Send a dump; see ``visibilities.VisibilitySink``. Weights are not sent, since dumps are complete."""
        heap = self._made_once(visibilities, self._heap)
        heap.set_time(timestamp)
        self._outlet.send([heap] * self._outlet.n_destinations)
        self.n_dumps += 1

    # ------------------------------------------------------------------ heaps
    def _heap(self, visibilities: np.ndarray) -> MemoryHeap:
        """Returns the heap whose payload is this memory."""
        return MemoryHeap(visibilities.reshape(self._shape), XENG_RAW, (FREQUENCY, self._first_channel))

    def _described(self) -> spead2.send.ItemGroup:
        group = spead2.send.ItemGroup(flavour=spead2.Flavour(*FLAVOUR))
        group.add_item(TIMESTAMP, "timestamp", "Samples since the stream's zero", (), format=IMMEDIATE)
        group.add_item(FREQUENCY, "frequency", "First channel of the heap", (), format=IMMEDIATE)
        about = "Visibilities: channel, baseline and product, real and imaginary part"
        group.add_item(XENG_RAW, "xeng_raw", about, self._shape, dtype=np.dtype("<i4"))
        return group
