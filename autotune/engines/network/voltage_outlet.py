"""Sends an F-engine's voltages as SPEAD heaps. Each destination gets a part of the channels."""

from collections.abc import Sequence
from itertools import compress
from typing import Unpack

import numpy as np
import spead2
import spead2.send

from ...core.errors import UsageError
from ..streams.voltages import REAL_HIGH, VoltageInfo
from .described import EVERY_S, DescribedOutlet
from .endpoints import Endpoint
from .items import FENG_ID, FENG_RAW, FLAVOUR, FREQUENCY, TIMESTAMP
from .memory_heap import IMMEDIATE, MemoryHeap
from .outlet import SendOptions, outlet

N_ITEMS = 4


class VoltageOutlet(DescribedOutlet[list[MemoryHeap]]):
    """A VoltageSink that sends, for each time, a heap of its channels to each destination.

    ``write`` returns when the kernel has the packets. Heaps are built once for each place in the engine's memory.

    Descriptors of 4-bit voltages with ``nibbles`` real_high have SPEAD's order: the real part comes first, in the high
    nibble. SPEAD has no other order: voltages with real_low are described as bytes.

    Args:
        feng_id: the antenna's index, from 0 to ``n_antennas`` - 1.
        transport: udp, ibv, tcp or inproc.
        is_paced: whether the packets of a heap are spread over most of the heap's time; otherwise they leave at once.
        sending: options; see ``outlet``.

    Raises:
        UsageError: when channels cannot be shared out evenly, or nothing can be sent to an address.
    """

    def __init__(
        self,
        info: VoltageInfo,
        feng_id: int,
        n_antennas: int,
        transport: str,
        to: Sequence[Endpoint] | Sequence[spead2.InprocQueue],
        *,
        is_paced: bool = True,
        **sending: Unpack[SendOptions],
    ) -> None:
        if info.n_channels % len(to):
            raise UsageError(f"{info.n_channels} channels cannot be shared out evenly to {len(to)} destinations")
        if not 0 <= feng_id < n_antennas:
            raise UsageError(f"feng_id={feng_id} must be an antenna's index, 0 to {n_antennas - 1}")
        self._info, self._feng_id, self._n_channels = info, feng_id, info.n_channels // len(to)
        n_bytes = int(np.prod(info.heap_shape)) // len(to)
        spread = (n_bytes, info.heap_samples / info.samples.sample_rate_hz) if is_paced else None
        first = feng_id + n_antennas
        sender = outlet(transport, to, n_items=N_ITEMS, first=first, step=n_antennas, spread=spread, **sending)
        self.n_heaps, self.n_bytes = 0, 0
        super().__init__(sender, self._described(), EVERY_S * n_antennas, EVERY_S * (feng_id + 1))

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Send heaps; see ``voltages.VoltageSink``. Incomplete heaps are left out, since they cannot mark gaps."""
        is_whole = np.asarray(present.reshape(len(present), -1).all(axis=1))
        for time, heap in zip(timestamps[is_whole].tolist(), compress(voltages, is_whole), strict=True):
            heaps = self._made_once(heap, self._heaps)
            for each in heaps:
                each.set_time(time)
            self._outlet.send(heaps)
            self.n_heaps += len(heaps)
            self.n_bytes += heap.nbytes

    # ------------------------------------------------------------------ heaps
    def _heaps(self, voltages: np.ndarray) -> list[MemoryHeap]:
        """Returns the heaps whose payload is this memory, of one time."""
        return [
            MemoryHeap(
                voltages[first : first + self._n_channels], FENG_RAW, (FENG_ID, self._feng_id), (FREQUENCY, first)
            )
            for first in range(0, len(voltages), self._n_channels)
        ]

    def _described(self) -> spead2.send.ItemGroup:
        group = spead2.send.ItemGroup(flavour=spead2.Flavour(*FLAVOUR))
        group.add_item(TIMESTAMP, "timestamp", "Samples since the stream's zero", (), format=IMMEDIATE)
        group.add_item(FENG_ID, "feng_id", "Index of the antenna", (), format=IMMEDIATE)
        group.add_item(FREQUENCY, "frequency", "First channel of the heap", (), format=IMMEDIATE)
        _, *rest = self._info.heap_shape
        shape, is_high = (self._n_channels, *rest), self._info.nibbles == REAL_HIGH
        about = "Voltages: channel, spectrum, polarisation, real and imaginary part"
        if self._info.bits == 8 or not is_high:
            dtype = np.dtype(np.int8 if self._info.bits == 8 else np.uint8)
            group.add_item(FENG_RAW, "feng_raw", about, shape, dtype=dtype)
        else:
            group.add_item(FENG_RAW, "feng_raw", about, (*shape, 2), format=[("i", self._info.bits)])
        return group
