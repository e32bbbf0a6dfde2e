"""Outlets send heaps to one or several destinations, by UDP, ibverbs, TCP or within the process.

An outlet never raises for events on the network. Heaps that could not leave are counted, and a refused or broken TCP
connection is tried again each second. A receiver that stops reading delays the others once, for ``PATIENCE_S``; then
its connection is closed.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, TypedDict

import spead2
import spead2.send

from ...core.errors import UsageError
from .endpoints import Endpoint
from .ibverbs import IBV, ibv_stream
from .items import FLAVOUR, PAYLOAD_BYTES
from .memory_heap import MemoryHeap

HEADER_BYTES = 8 + 8 * 4  # SPEAD's own, and heap counter, heap size, payload offset and payload length
BURST_BYTES = 65536
FASTER = 1.1  # paced heaps leave faster than the stream by this factor
MOST_SPREAD_S = 1.0  # an outlet that is asked to end waits so long at most
SOCKET_BYTES = 4 << 20
MOST_HEAPS = 4096  # heaps under way in a stream
RETRY_S = 1.0
AGAIN_S = 0.1  # pause between two tries of a sender that waits for its connection
CONNECT_S = 1.0  # timeout of one try to connect
PATIENCE_S = 2.0
MOST_BUFFERS = 512  # buffers in one call of the kernel; Linux takes 1024
Buffer: TypeAlias = bytes | memoryview
AnyHeap: TypeAlias = spead2.send.Heap | MemoryHeap
IP_MTU, IP_BYTES = 14, 28  # Linux's option, and the headers of IP and UDP
ROUND_ROBIN = spead2.send.GroupMode.ROUND_ROBIN


class SendOptions(TypedDict, total=False):
    """The options of all outlets; ``outlet`` says what they are."""

    payload: int | None
    interface: str
    cores: Sequence[int]
    patience_s: float
    is_asked: Callable[[], bool]


def never() -> bool:
    """Returns False: nobody asks the sender to end."""
    return False


class Outlet(Protocol):
    """An object that sends heaps to its destinations."""

    n_destinations: int

    @property
    def n_failed(self) -> int:
        """Returns the number of heaps that could not leave."""

    @property
    def not_connected(self) -> list[str]:
        """Returns the addresses without a TCP connection."""

    def send(self, heaps: Sequence[AnyHeap], rate: float | None = None, waits: bool = True) -> None:
        """Send a heap to each destination at the same time.

        Returns when the kernel has the packets, or sending failed; the heaps' memory may be used again then.

        Args:
            rate: bytes a second; 0 is unlimited, and None takes the outlet's rate, unless the sender should end.
            waits: whether the outlet may wait for a missing connection.
        """

    def close(self) -> None: ...


def heap_config(payload: int, n_items: int, rate: float) -> spead2.send.StreamConfig:
    """Returns the configuration of a stream whose packets each have ``payload`` bytes and ``n_items`` items."""
    return spead2.send.StreamConfig(
        max_packet_size=payload + HEADER_BYTES + 8 * n_items,
        max_heaps=MOST_HEAPS,
        rate=rate,
        burst_size=BURST_BYTES,
    )


def spead2_heap(heap: AnyHeap) -> spead2.send.Heap:
    """Returns the heap as an object of spead2."""
    return heap.heap if isinstance(heap, MemoryHeap) else heap


def packets_of(heap: AnyHeap, number: int, packet_bytes: int) -> Iterable[Buffer]:
    """Returns the bytes of a heap's packets in parts. The payload of a MemoryHeap is not copied."""
    if isinstance(heap, MemoryHeap):
        return heap.packets(number, packet_bytes)
    return [bytes(packet) for packet in spead2.send.PacketGenerator(heap, number, packet_bytes)]


def stop_heap() -> spead2.send.Heap:
    """Returns the heap that ends a stream."""
    heap = spead2.send.Heap(spead2.Flavour(*FLAVOUR))
    heap.add_end()
    return heap


class GroupOutlet:
    """One stream to all destinations, by UDP, ibverbs or within the process. The heaps of a call leave interleaved.

    Args:
        transport: udp, ibv or inproc.
        to: endpoints, or queues of this process.
        first, step: the number of the first heap, and the difference from each number to the next.
        interface: the address of the interface that sends multicast, and everything by ibv.
    """

    def __init__(
        self,
        transport: str,
        to: Sequence[Endpoint] | Sequence[spead2.InprocQueue],
        config: spead2.send.StreamConfig,
        first: int,
        step: int,
        interface: str = "",
        ttl: int = 4,
        cores: Sequence[int] = (),
        is_asked: Callable[[], bool] = never,
    ) -> None:
        pool = self._pool = spead2.ThreadPool(1, list(cores))
        self._stream: Any
        places = [each for each in to if isinstance(each, Endpoint)]
        if transport == IBV:
            self._stream = ibv_stream(pool, places, config, interface, ttl)
        elif places:
            self._stream = udp_stream(pool, places, config, interface, ttl)
        else:
            queues = [each for each in to if isinstance(each, spead2.InprocQueue)]
            self._stream = spead2.send.InprocStream(pool, queues, config)
        self._stream.set_cnt_sequence(first, step)
        self._lock, self._is_asked = threading.Lock(), is_asked
        self.n_destinations, self.n_failed = len(to), 0

    @property
    def not_connected(self) -> list[str]:
        return []

    def send(self, heaps: Sequence[AnyHeap], rate: float | None = None, waits: bool = True) -> None:
        """Send a heap to each destination; see ``Outlet``."""
        send_rate = (0.0 if self._is_asked() else -1.0) if rate is None else rate
        references = [
            spead2.send.HeapReference(spead2_heap(heap), substream_index=place, rate=send_rate)
            for place, heap in enumerate(heaps)
        ]
        with self._lock:
            if self._stream is None:
                self.n_failed += len(heaps)
                return
            try:
                self._stream.send_heaps(references, ROUND_ROBIN)
            except (RuntimeError, OSError):
                self.n_failed += len(heaps)

    def close(self) -> None:
        """End the streams. spead2's objects are freed now, since its threads may hang an interpreter that ends."""
        self.send([stop_heap() for _ in range(self.n_destinations)], 0.0)
        with self._lock:
            self._stream = None
            self._pool.stop()


def udp_stream(
    pool: spead2.ThreadPool, to: Sequence[Endpoint], config: spead2.send.StreamConfig, interface: str, ttl: int
) -> spead2.send.UdpStream:
    """Returns a stream to some addresses. Raises UsageError when nothing can be sent to them."""
    more: dict[str, Any] = {"interface_address": interface} if interface else {}
    if to[0].is_multicast:
        more["ttl"] = ttl
    try:
        return spead2.send.UdpStream(pool, [(each.host, each.port) for each in to], config, SOCKET_BYTES, **more)
    except (RuntimeError, OSError, ValueError) as error:
        raise UsageError(f"nothing can be sent to {', '.join(map(str, to))}: {error}") from error


class TcpOutlet:
    """A connection to each destination. This class sends the packets itself, since spead2's TCP stream never returns
    from a connection that has broken.
    """

    def __init__(
        self,
        to: Sequence[Endpoint],
        packet_bytes: int,
        rate: float,
        first: int,
        step: int,
        patience_s: float = PATIENCE_S,
        is_asked: Callable[[], bool] = never,
    ) -> None:
        self._connections = [Connection(endpoint, patience_s, is_asked) for endpoint in to]
        self._packet_bytes, self._rate, self._next, self._step = packet_bytes, rate, first, step
        self._lock, self._is_closed, self._is_asked = threading.Lock(), threading.Event(), is_asked
        self.n_destinations, self.n_failed = len(to), 0
        self._thread = threading.Thread(target=self._keep_connected, name="autotune-connects", daemon=True)
        self._thread.start()

    @property
    def not_connected(self) -> list[str]:
        return [str(connection.endpoint) for connection in self._connections if not connection.is_open]

    def send(self, heaps: Sequence[AnyHeap], rate: float | None = None, waits: bool = True) -> None:
        """Send a heap to each destination; see ``Outlet``."""
        rate = (0.0 if self._is_asked() else self._rate) if rate is None else rate
        with self._lock:
            for connection, heap in zip(self._connections, heaps, strict=True):
                number, self._next = self._next, self._next + self._step
                if not connection.has_sent(packets_of(heap, number, self._packet_bytes), rate, waits):
                    self.n_failed += 1

    def close(self) -> None:
        """End the streams, and close the connections."""
        self.send([stop_heap() for _ in self._connections], 0.0, waits=False)
        self._is_closed.set()
        self._thread.join()
        for connection in self._connections:
            connection.close()

    def _keep_connected(self) -> None:
        while not self._is_closed.wait(RETRY_S):
            for connection in self._connections:
                if not self._is_closed.is_set():
                    connection.connect()


class Connection:
    """A TCP connection, which can be made again when it has broken.

    ``patience_s``: the time for which a receiver may stop reading. If it is longer than PATIENCE_S, the sender can
    wait, and waits as long once for a missing connection, unless ``is_asked`` returns that it should end.
    """

    def __init__(
        self, endpoint: Endpoint, patience_s: float = PATIENCE_S, is_asked: Callable[[], bool] = never
    ) -> None:
        self.endpoint, self._patience_s, self._is_asked = endpoint, patience_s, is_asked
        self._is_given_up = patience_s <= PATIENCE_S
        self._socket = connected(endpoint)

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    def connect(self) -> None:
        """Try to make the connection if it is missing."""
        if self._socket is None:
            self._socket = connected(self.endpoint)

    def has_sent(self, buffers: Iterable[Buffer], rate: float, waits: bool = True) -> bool:
        """Returns whether the kernel has all buffers. Closes a connection that is broken or too slow."""
        if self._socket is None and waits and not self._is_given_up:
            self._wait()
        if self._socket is None:
            return False
        self._is_given_up = self._patience_s <= PATIENCE_S
        due = time.monotonic()
        try:
            for burst in bursts(buffers):
                send_all(self._socket, burst, self._patience_s, self._is_asked)
                if rate:
                    due += sum(map(len, burst)) / rate
                    time.sleep(max(0.0, due - time.monotonic()))
        except OSError:
            self.close()
            return False
        return True

    def _wait(self) -> None:
        """Wait until there is a connection, or the time is over."""
        end = time.monotonic() + self._patience_s
        while self._socket is None and not self._is_given_up:
            time.sleep(AGAIN_S)
            self.connect()
            self._is_given_up = time.monotonic() > end or self._is_asked()

    def close(self) -> None:
        """Close the connection; ``connect`` may make it again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def connected(endpoint: Endpoint) -> socket.socket | None:
    """Returns a connection; None if it is refused or takes longer than CONNECT_S."""
    try:
        connection = socket.create_connection((endpoint.host, endpoint.port), CONNECT_S)
    except OSError:
        return None
    connection.settimeout(AGAIN_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def fitting(payload: int | None, to: Endpoint, interface: str, n_items: int) -> int | None:
    """Returns the bytes of payload of packets that the network on the way to an IPv4 address takes whole.

    Raises:
        UsageError: when it does not take the given ``payload``.
    """
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        if interface:
            route.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        route.connect((to.host, to.port))  # this sends nothing
        most = (route.getsockopt(socket.IPPROTO_IP, IP_MTU) - IP_BYTES - HEADER_BYTES - 8 * n_items) // 8 * 8
        if payload is not None and payload > most:
            raise UsageError(f"the network to {to} takes no packets with {payload} bytes of payload: give {most}")
        return min(PAYLOAD_BYTES, most) if payload is None else payload
    return payload


def bursts(buffers: Iterable[Buffer]) -> Iterator[list[Buffer]]:
    """Yields buffers in groups, which end at BURST_BYTES or at MOST_BUFFERS buffers."""
    some: list[Buffer] = []
    n_bytes = 0
    for buffer in buffers:
        some.append(buffer)
        n_bytes += len(buffer)
        if n_bytes >= BURST_BYTES or len(some) == MOST_BUFFERS:
            yield some
            some, n_bytes = [], 0
    if some:
        yield some


def send_all(to: socket.socket, buffers: Sequence[Buffer], patience_s: float, is_asked: Callable[[], bool]) -> None:
    """Sends buffers one after the other, without copying them together. Raises OSError, also for a long pause."""
    left, end = [memoryview(buffer) for buffer in buffers], time.monotonic() + patience_s
    while left:
        try:
            n = to.sendmsg(left)
        except TimeoutError:
            if time.monotonic() > end or is_asked():
                raise
            continue
        done, end = 0, time.monotonic() + patience_s
        while done < len(left) and n >= len(left[done]):
            n -= len(left[done])
            done += 1
        left = left[done:]
        if n:
            left[0] = left[0][n:]


def outlet(
    transport: str,
    to: Sequence[Endpoint] | Sequence[spead2.InprocQueue],
    *,
    n_items: int,
    first: int,
    step: int,
    spread: tuple[int, float] | None = None,
    payload: int | None = None,
    interface: str = "",
    cores: Sequence[int] = (),
    patience_s: float = PATIENCE_S,
    is_asked: Callable[[], bool] = never,
) -> Outlet:
    """Returns an outlet by ``transport``: udp, ibv, tcp or inproc.

    Args:
        n_items: items of a heap, without SPEAD's own four.
        spread: the bytes of a destination's heap, and the seconds from one to the next, over most of which its packets
            are spread, or over MOST_SPREAD_S if that is shorter. None: they leave at once.
        payload: the most bytes of payload in a packet; None: 8192, or what all networks on the way take whole.
        interface: the address of the interface that sends multicast, and everything by ibv.
        patience_s: the time after which the connection of a TCP receiver that does not read is closed.
        is_asked: returns whether the sender should end; then it waits for no connection.

    Raises:
        UsageError: for another transport, for packets that an address does not take, or when it takes nothing.
    """
    routed = [each for each in to if isinstance(each, Endpoint) and transport == "udp"]
    found = [fitting(payload, each, interface, n_items) for each in routed]
    payload = min((each for each in found if each is not None), default=payload or PAYLOAD_BYTES)
    rate = 0.0
    if spread is not None:
        n_bytes, seconds = spread
        n_bytes += -(-n_bytes // payload) * (HEADER_BYTES + 8 * n_items)
        rate = n_bytes * len(to) / min(seconds / FASTER, MOST_SPREAD_S)
    config = heap_config(payload, n_items, rate)
    if transport == "tcp":
        endpoints = [each for each in to if isinstance(each, Endpoint)]
        return TcpOutlet(endpoints, config.max_packet_size, rate, first, step, patience_s, is_asked)
    if transport in ("udp", IBV, "inproc"):
        return GroupOutlet(transport, to, config, first, step, interface, cores=cores, is_asked=is_asked)
    raise UsageError(f"transport is {transport!r}; it may be udp, ibv, tcp or inproc")
