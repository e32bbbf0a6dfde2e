"""Sends a digitiser's samples as SPEAD heaps of one packet each.

The bytes of packets are made here. Any packet can be sent twice, out of order or damaged on purpose, and thousands are
made at once.
"""

import socket
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import spead2
import spead2.send

from ...core.errors import UsageError
from ..streams.samples import SampleInfo
from . import items
from .described import EVERY_S
from .endpoints import Endpoint
from .memory_heap import IMMEDIATE
from .outlet import SOCKET_BYTES, Connection, stop_heap

TTL = 4
RETRY_S = 1.0
IMMEDIATE_FLAG = 1 << 63
ID_SHIFT = 48
DAMAGED_BYTES = 8  # bytes that change in a packet that is damaged on purpose


class UdpPlace:
    """A UDP address as a destination of packets.

    Raises:
        UsageError: where nothing can be sent to it.
    """

    def __init__(self, endpoint: Endpoint, interface: str, ttl: int) -> None:
        try:
            family, _, _, _, address = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_DGRAM)[0]
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
            if endpoint.is_multicast and family == socket.AF_INET:
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
                if interface:
                    option = socket.inet_aton(interface)
                    self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, option)
            self._socket.connect(address)
        except OSError as error:
            raise UsageError(f"nothing can be sent to {endpoint}: {error.strerror or error}") from error

    def has_sent(self, packets: Sequence[bytes | memoryview], rate: float) -> bool:
        """Returns whether the kernel has all packets."""
        for packet in packets:
            try:
                self._socket.send(packet)
            except ConnectionRefusedError:  # the error is about an earlier packet, and this one was not sent
                try:
                    self._socket.send(packet)
                except OSError:
                    return False
            except OSError:
                return False
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class SampleOutlet:
    """Sends each polarisation's packets to its own addresses, which take turns.

    A heap of descriptors leaves at once and then every 5 s. Descriptors have odd heap numbers, samples even ones.

    Args:
        transport: udp or tcp.
        to: the addresses of each polarisation, which take turns; with tcp exactly one.
        interface: the address of the interface that sends multicast.

    Raises:
        UsageError: where nothing can be sent to an address.
    """

    def __init__(
        self, info: SampleInfo, transport: str, to: Sequence[Sequence[Endpoint]], interface: str = "", ttl: int = TTL
    ) -> None:
        if len(to) != info.n_pols or not all(to):
            raise UsageError(f"there are addresses for {len(to)} polarisations; the samples have {info.n_pols}")
        if transport == "tcp" and any(len(some) > 1 for some in to):
            raise UsageError("a polarisation has several addresses; with tcp it can have only one")
        if transport not in ("udp", "tcp"):
            raise UsageError(f"transport is {transport!r}; it may be udp or tcp")
        self._info, self._n_bytes = info, info.packet * info.sample_bits // 8
        self._is_tcp = transport == "tcp"
        kind = Connection if self._is_tcp else partial(UdpPlace, interface=interface, ttl=ttl)
        self._places: list[list[Connection | UdpPlace]] = [[kind(each) for each in some] for some in to]
        self._number = 0  # number of the next heap of samples
        self._described_at, self._tried_at = -EVERY_S, time.monotonic()
        self.n_sent = self.n_failed = 0  # packets of samples

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection, after another try to connect."""
        lacking = []
        for some in self._places:
            for place in some:
                if isinstance(place, Connection):
                    place.connect()
                    lacking += [str(place.endpoint)] * (not place.is_open)
        return lacking

    def packets(self, times: np.ndarray, pol: int, payload: np.ndarray, saturated: np.ndarray) -> np.ndarray:
        """Returns packets, uint8 [n, bytes], for ``send``.

        Args:
            times: int64 [n], in samples.
            payload: uint8 [n, packet sample_bits / 8].
            saturated: int64 [n]: saturated samples in each packet.
        """
        n = len(times)
        packets = np.empty((n, items.DIGITISER_HEADER_BYTES + self._n_bytes), np.uint8)
        numbers = 2 * (self._number + np.arange(n, dtype=np.uint64))
        self._number += n
        status = saturated.astype(np.uint64) << np.uint64(items.DIGITISER_SATURATED_SHIFT)
        status |= np.where(saturated > 0, items.DIGITISER_SATURATED, 0).astype(np.uint64)
        words = np.empty((n, items.DIGITISER_HEADER_BYTES // 8), ">u8")
        words[:, 0] = int.from_bytes(bytes([0x53, 4, 2, 6, 0, 0, 0, words.shape[1] - 1]), "big")
        immediates: list[tuple[int, np.ndarray | int]] = [
            (items.HEAP_COUNTER, numbers),
            (items.HEAP_LENGTH, self._n_bytes),
            (items.PAYLOAD_OFFSET, 0),
            (items.PAYLOAD_LENGTH, self._n_bytes),
            (items.TIMESTAMP, times.astype(np.uint64)),
            (items.DIGITISER_ID, pol),
            (items.DIGITISER_STATUS, status),
        ]
        for place, (number, value) in enumerate(immediates, 1):
            low = np.asarray(value, np.uint64) & np.uint64(items.TIME_MASK)
            words[:, place] = low | np.uint64(IMMEDIATE_FLAG | number << ID_SHIFT)
        words[:, -1] = items.ADC_SAMPLES << ID_SHIFT
        packets[:, : items.DIGITISER_HEADER_BYTES] = words.view(np.uint8)
        packets[:, items.DIGITISER_HEADER_BYTES :] = payload
        return packets

    def send(self, pol: int, packets: np.ndarray, numbers: np.ndarray) -> None:
        """Send packets, uint8 [n, bytes]. Returns when the kernel has them, or sending failed.

        ``numbers``: int64 [n], the packets' numbers in their stream, which decide the address of each.
        """
        self._describe()
        places = self._places[pol]
        if self._is_tcp:
            self._count(len(packets), places[0].has_sent([packets.tobytes()], 0.0))
            return
        for packet, number in zip(packets, numbers.tolist(), strict=True):
            self._count(1, places[number % len(places)].has_sent([packet.data], 0.0))

    def close(self) -> None:
        """End the streams, and close the sockets."""
        self._to_all(stop_heap())
        for place in self._all():
            place.close()

    def _all(self) -> list[Connection | UdpPlace]:
        return [place for some in self._places for place in some]

    def _count(self, n: int, has_left: bool) -> None:
        self.n_sent += n * has_left
        self.n_failed += n * (not has_left)

    def _describe(self) -> None:
        now = time.monotonic()
        if self._is_tcp and now - self._tried_at >= RETRY_S:
            self._tried_at = now
            for place in self._all():
                if isinstance(place, Connection) and not place.is_open:
                    place.connect()
        if now - self._described_at < EVERY_S:
            return
        self._described_at = now
        group = spead2.send.ItemGroup(flavour=spead2.Flavour(*items.FLAVOUR))
        group.add_item(items.TIMESTAMP, "timestamp", "Samples since the stream's zero", (), format=IMMEDIATE)
        group.add_item(items.DIGITISER_ID, "digitiser_id", "The polarisation, in the lowest bit", (), format=IMMEDIATE)
        about = "Saturated samples from bit 32 on, and bit 1 if there are some"
        group.add_item(items.DIGITISER_STATUS, "digitiser_status", about, (), format=IMMEDIATE)
        shape, kind = (self._info.packet,), [("i", self._info.sample_bits)]
        group.add_item(items.ADC_SAMPLES, "adc_samples", "Samples of a polarisation", shape, format=kind)
        self._to_all(group.get_heap(descriptors="all", data="none"))

    def _to_all(self, heap: spead2.send.Heap) -> None:
        size = items.DIGITISER_HEADER_BYTES + self._n_bytes
        packets = [bytes(packet) for packet in spead2.send.PacketGenerator(heap, 2 * self._number + 1, size)]
        for place in self._all():
            place.has_sent(packets, 0.0)


def damage(packets: np.ndarray, rng: np.random.Generator, first: int = 0) -> None:
    """Change some random bytes of packets, uint8 [n, bytes], from byte ``first`` of the packet on."""
    n, length = packets.shape
    places = rng.integers(first, length, (n, DAMAGED_BYTES))
    packets[np.arange(n)[:, np.newaxis], places] ^= rng.integers(1, 256, places.shape, dtype=np.uint8)
