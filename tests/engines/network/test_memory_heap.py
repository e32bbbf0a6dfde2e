"""Heaps that stay in memory: their packets are those that spead2 makes of the same items, whatever was sent before."""

import numpy as np
import pytest
import spead2
import spead2.send

from autotune.engines.network.items import FENG_ID, FENG_RAW, FREQUENCY
from autotune.engines.network.memory_heap import MemoryHeap


def by_spead2(payload: np.ndarray, time: int, number: int, packet_bytes: int) -> bytes:
    heap = spead2.send.Heap(spead2.Flavour(4, 64, 48, 0))
    for item, value in ((0x1600, time % (1 << 48)), (FENG_ID, 3), (FREQUENCY, 128)):
        heap.add_item(spead2.Item(item, "", "", (), format=[("u", 48)], value=value))
    heap.add_item(spead2.Item(FENG_RAW, "", "", payload.shape, payload.dtype, value=payload))
    heap.repeat_pointers = True
    return b"".join(bytes(packet) for packet in spead2.send.PacketGenerator(heap, number, packet_bytes))


@pytest.mark.parametrize("shape", [(3, 5, 2, 2), (64, 32, 2, 2), (1000, 2, 2, 2), (100, 41, 2)])
def test_packets_are_those_of_spead2(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(shape))
    payload = np.empty(shape, np.int8)
    heap = MemoryHeap(payload, FENG_RAW, (FENG_ID, 3), (FREQUENCY, 128))
    for number, time, packet_bytes in ((7, 0, 1024), (8, (1 << 48) + 5, 1024), ((1 << 48) - 1, (1 << 50) - 1, 8264)):
        payload[...] = rng.integers(-128, 128, shape)
        heap.set_time(time)
        assert b"".join(heap.packets(number, packet_bytes)) == by_spead2(payload, time, number, packet_bytes)
