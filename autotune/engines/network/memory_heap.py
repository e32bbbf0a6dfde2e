"""Heaps whose payload stays in an engine's memory. Each is built once for its memory and sent many times."""

import numpy as np
import spead2
import spead2.send

from .items import FLAVOUR, TIME_MASK, TIMESTAMP

IMMEDIATE = [("u", 48)]  # the format of an item whose value is in its pointer
ID_SHIFT, ID_MASK = 48, (1 << 15) - 1
COUNTER_WORD = 1  # the heap counter's place in a header, in words of 8 bytes; word 0 is SPEAD's own


def immediate(number: int, value: int | np.ndarray) -> spead2.Item:
    """Returns an item of 48 bits. If ``value`` is an array of one number, its content may change between heaps."""
    return spead2.Item(number, "", "", (), format=IMMEDIATE, value=value)


class MemoryHeap:
    """A heap with a time, immediate items and a payload, which is not copied.

    Args:
        payload: its content is read when the heap is sent.
        item: the id of the payload's item.
        immediates: (id, value) of each other item.
    """

    def __init__(self, payload: np.ndarray, item: int, *immediates: tuple[int, int]) -> None:
        self._stamp = np.zeros((), ">u8")
        self.heap = spead2.send.Heap(spead2.Flavour(*FLAVOUR))
        self.heap.add_item(immediate(TIMESTAMP, self._stamp))
        for number, value in immediates:
            self.heap.add_item(immediate(number, value))
        self.heap.add_item(spead2.Item(item, "", "", payload.shape, payload.dtype, value=payload))
        self.heap.repeat_pointers = True  # all items are in each packet
        self._bytes = payload.reshape(-1).view(np.uint8).data
        self._packet_bytes = 0
        self._headers = np.zeros((0, 0), ">u8")
        self._views: list[memoryview] = []
        self._time = 0

    def set_time(self, time: int) -> None:
        """Write the time, in samples."""
        self._time = time
        self._stamp[...] = time & TIME_MASK

    def packets(self, number: int, packet_bytes: int) -> list[memoryview]:
        """Returns the header and payload of each packet in turn: views of memory, which are valid until the next call.

        Args:
            number: the heap's number.
            packet_bytes: the most bytes of a whole packet.
        """
        if packet_bytes != self._packet_bytes:
            self._build(number, packet_bytes)
        self._write(COUNTER_WORD, number)
        self._write(self._time_word, self._time)
        return self._views

    def _write(self, word: int, value: int) -> None:
        high = int(self._headers[0, word]) & ~TIME_MASK
        self._headers[:, word] = high | (value & TIME_MASK)

    def _build(self, number: int, packet_bytes: int) -> None:
        """Copies the headers from packets that spead2 makes."""
        self._packet_bytes = packet_bytes
        rows, ends = [], []
        for packet in spead2.send.PacketGenerator(self.heap, number, packet_bytes):
            n_items = int.from_bytes(bytes(packet[6:8]), "big")
            n_header = 8 + 8 * n_items
            rows.append(np.frombuffer(bytes(packet[:n_header]), ">u8"))
            ends.append(len(packet) - n_header)
        self._headers = np.stack(rows).astype(">u8")  # np.stack changes to the byte order of this machine
        ids = [int(word) >> ID_SHIFT & ID_MASK for word in self._headers[0, 1:].tolist()]
        self._time_word = 1 + ids.index(TIMESTAMP)
        self._views, at = [], 0
        for row, length in zip(self._headers, ends, strict=True):
            self._views += [row.view(np.uint8).data, self._bytes[at : at + length]]
            at += length
