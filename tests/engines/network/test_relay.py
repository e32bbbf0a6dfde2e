"""Heaps of F-engines on their way to an X-engine through a relay that loses, repeats and exchanges packets."""

import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.network import items
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import ReceivedVoltages
from autotune.engines.network.receiver import Listening
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.streams.in_memory import KeptVisibilities
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import Batches, VoltageInfo
from autotune.engines.x.engine import XEngine

from ...waiting import wait_until
from .ports import free_ports

C, HEAP, N_ANTENNAS, N_BATCHES, PER_CHUNK, PER_DUMP, PER_HEAP = 32, 192, 3, 40, 8, 2, 3  # packets of a heap
SHARE = 0.01
INFO = VoltageInfo(C, 2, 8, HEAP, 2 * C, SampleInfo(10, 2, 1e6, 256))
ANTENNAS = (INFO,) * N_ANTENNAS


class Heaps:
    """A source of voltages in memory, of which some heaps are missing."""

    is_live = False

    def __init__(self, voltages: np.ndarray, present: np.ndarray) -> None:
        self.antennas, self._voltages, self._present, self._at = ANTENNAS, voltages, present, 0

    def read(self, out: np.ndarray) -> Batches | None:
        first = self._at
        if first == N_BATCHES:
            return None
        self._at += len(out)
        out[:] = self._voltages[first : self._at]
        return Batches(first * INFO.heap_samples, self._present[first : self._at])

    def close(self) -> None:
        return


class Watched(ReceivedVoltages):
    """Notes which heaps came: ``present``."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.present: list[np.ndarray] = []

    def take(self) -> tuple[int, Batches] | None:
        taken = super().take()
        if taken is not None:
            self.present.append(taken[1].present.copy())
        return taken


def correlated(source: Any) -> KeptVisibilities:
    backend, sink = HostBackend(), KeptVisibilities()
    kernels = Kernels(backend, lambda line: None)
    cut = {"accumulate": PER_DUMP, "batches_per_chunk": PER_CHUNK}
    XEngine(backend, source, sink, kernels, **cut, complete_dumps=True).run()
    return sink


def heap_of(packet: bytes) -> tuple[int, int] | None:
    """(batch, antenna) of a packet; None: it is a descriptor or a stop."""
    words = np.frombuffer(packet[8 : 8 + 8 * packet[7]], ">u8").tolist()
    values = {word >> 48 & 0x7FFF: word & items.TIME_MASK for word in words}
    if items.FENG_ID not in values:
        return None
    return values[items.TIMESTAMP] // INFO.heap_samples, values[items.FENG_ID]


def packets_of(voltages: np.ndarray) -> list[bytes]:
    """What comes to a UDP socket of F-engines that write heaps in turn."""
    got: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as relay:
        relay.bind(("127.0.0.1", 0))
        relay.settimeout(60)
        to = [Endpoint(*relay.getsockname())]
        outlets = [VoltageOutlet(INFO, a, N_ANTENNAS, "udp", to, is_paced=False) for a in range(N_ANTENNAS)]
        got += [relay.recv(1 << 16) for _ in outlets]  # descriptors
        present = np.ones((1, INFO.spectra_per_heap, 2), bool)
        for at, heaps in enumerate(voltages):
            for antenna, outlet in enumerate(outlets):
                time_of = np.array([at * INFO.heap_samples])
                outlet.write(
                    time_of,
                    heaps[antenna][np.newaxis],
                    np.zeros((1, 2), np.uint32),
                    present,
                )
                got += [relay.recv(1 << 16) for _ in range(PER_HEAP)]
        for outlet in outlets:
            outlet.close()
            got.append(relay.recv(1 << 16))
    return got


@dataclass
class Relayed:
    """Packets in the order in which a relay sends them on, and what it did to them."""

    order: list[bytes]
    came: np.ndarray  # bool [N_BATCHES, N_ANTENNAS]: heaps of which no packet is lost
    n_late: int  # heaps of which a packet comes again when they are whole

    @classmethod
    def of(cls, packets: Sequence[bytes], rng: np.random.Generator) -> "Relayed":
        """Loses, repeats and exchanges SHARE of the packets, descriptors and stops not among them."""
        came, order = np.ones((N_BATCHES, N_ANTENNAS), bool), list(packets)
        for at in range(N_ANTENNAS, len(order) - N_ANTENNAS - PER_HEAP):
            if rng.random() < SHARE:
                other = at + int(rng.integers(1, PER_HEAP))
                order[at], order[other] = order[other], order[at]
        sent, repeats = list[bytes](), dict[int, list[bytes]]()  # repeats by how many packets come before
        for packet in order:
            sent += repeats.pop(len(sent), [])
            if (heap := heap_of(packet)) is not None and rng.random() < SHARE:
                came[heap] = False
                continue
            if heap is not None and rng.random() < SHARE:
                repeats.setdefault(len(sent) + int(rng.integers(1, 3 * PER_HEAP)), []).append(packet)
            sent.append(packet)
        return cls(sent, came, cls.late(sent))

    @staticmethod
    def late(sent: Sequence[bytes]) -> int:
        """How many heaps come again, in part, when all of their packets have come."""
        begun, again = dict[tuple[int, int], set[bytes]](), set[tuple[int, int]]()
        for packet in sent:
            if (heap := heap_of(packet)) is not None:
                if len(begun.setdefault(heap, set())) == PER_HEAP:
                    again.add(heap)
                begun[heap].add(packet)
        return len(again)


def relay(order: Sequence[bytes], port: int, n_read: Callable[[], int]) -> None:
    """Send packets on, some at a time: a socket holds no more of them, and loses the others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect(("127.0.0.1", port))
        for at, packet in enumerate(order):
            out.send(packet)
            if at % (3 * PER_HEAP) == 0:
                wait_until(lambda at=at: n_read() > at)  # type: ignore[misc]


def test_of_heaps_through_a_relay_those_that_are_hit_are_missing_and_all_else_is_exact() -> None:
    rng = np.random.default_rng(2)
    voltages = rng.integers(-127, 128, (N_BATCHES, N_ANTENNAS, C, HEAP, 2, 2), dtype=np.int8)
    relayed = Relayed.of(packets_of(voltages), rng)
    n_lost = int(np.count_nonzero(~relayed.came))
    assert n_lost > 1 and relayed.n_late > 1
    (port,) = free_ports(1, socket.SOCK_DGRAM)
    listening = Listening([[Endpoint("127.0.0.1", port)]])
    source = Watched(
        ANTENNAS, listening, is_live=False, confirm=1, n_enders=N_ANTENNAS, n_substreams=N_ANTENNAS
    )  # its memory has room for all of it
    found: list[KeptVisibilities] = []
    engine = threading.Thread(target=lambda: found.append(correlated(source)), daemon=True)
    engine.start()
    wait_until(lambda: source.receiver)
    assert source.receiver is not None
    (stream,) = source.receiver._group
    relay(relayed.order, port, lambda: int(stream.stats["packets"]))
    engine.join(120)
    source.close()
    assert np.array_equal(np.concatenate(source.present), relayed.came)
    expected = correlated(Heaps(voltages, relayed.came))
    assert found[0].timestamps == expected.timestamps and len(expected.timestamps) == N_BATCHES // PER_DUMP
    assert np.array_equal(found[0].weights, expected.weights)
    assert np.array_equal(found[0].visibilities, expected.visibilities)
    counts = {name: n for name, n in source.receiver.counts.items() if n}
    assert counts == {
        "heaps": voltages.shape[0] * N_ANTENNAS + 2 * N_ANTENNAS + relayed.n_late,
        "placed": N_BATCHES * N_ANTENNAS - n_lost,
        "incomplete": n_lost,
        "repeated": relayed.n_late,
        "no_data": N_ANTENNAS,
        "stops": N_ANTENNAS,
        "packets": len(relayed.order),
    }
