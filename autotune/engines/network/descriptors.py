"""The types of payloads, as descriptors on the wire state them and as an engine's settings do: "i8 [64, 32, 2, 2]"."""

from collections.abc import Sequence

import numpy as np
import spead2
import spead2.recv

from ..streams.samples import SampleInfo
from ..streams.voltages import REAL_HIGH, VoltageInfo
from . import items
from .memory_heap import ID_MASK

HEAD = bytes((0x53, 4, 2, 6))  # a packet of SPEAD 4, 64-48
UNREADABLE = (ValueError, TypeError, SyntaxError, OverflowError, MemoryError, RecursionError)  # a stranger wrote it
PLAIN = "u8"  # bytes: SPEAD cannot describe 4-bit voltages whose real part is in the low nibble


def type_text(kind: str, shape: Sequence[int]) -> str:
    """Returns a type as text: i or u, the bits of an element, and the shape."""
    return f"{kind} {list(shape)}"


def voltage_type(info: VoltageInfo) -> str:
    """Returns the type of a heap of voltages. At 4 bits ``i4 [.., 2]`` has its real parts in the high nibbles."""
    if info.bits == 4:
        is_high = info.nibbles == REAL_HIGH
        return type_text("i4", (*info.heap_shape, 2)) if is_high else type_text(PLAIN, info.heap_shape)
    return type_text(f"i{info.bits}", info.heap_shape)


def sample_type(info: SampleInfo) -> str:
    """Returns the type of a packet of samples."""
    return type_text(f"i{info.sample_bits}", (info.packet,))


def stated_type(packet: bytes, item: int) -> str:
    """Returns the type that a packet of descriptors states for an item; empty if it states none that can be read.

    The packet must have a whole heap: spead2 believes a wrong length, and asks for so much memory.
    """
    begin = 8 + 8 * int.from_bytes(packet[6:8], "big")
    payload = len(packet) - begin
    if packet[:4] != HEAD or payload < 0:
        return ""
    pointers = np.frombuffer(packet[8:begin], ">u8")
    ids, values = pointers >> 48 & ID_MASK, pointers & items.TIME_MASK
    whole = {items.HEAP_LENGTH: payload, items.PAYLOAD_LENGTH: payload, items.PAYLOAD_OFFSET: 0}
    if any(set(values[ids == each].tolist()) != {length} for each, length in whole.items()):
        return ""
    stream = spead2.recv.Stream(spead2.ThreadPool(1))
    stream.add_buffer_reader(packet)
    try:
        for heap in stream:
            for each in heap.get_descriptors():
                found = spead2.Descriptor.from_raw(each, heap.flavour)
                if found.id == item and (found.dtype is not None or len(found.format) == 1):
                    kind = _kind(found.dtype) if found.dtype is not None else "{}{}".format(*found.format[0])
                    return type_text(kind, found.shape)
    except UNREADABLE:
        pass
    return ""


def _kind(dtype: np.dtype) -> str:
    return f"{dtype.kind}{8 * dtype.itemsize}"
