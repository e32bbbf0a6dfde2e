"""Samples to SPEAD to F-engines to SPEAD to an X-engine to SPEAD: dumps as without a network, bit by bit."""

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import spead2
import spead2.send

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output, voltage_info
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filters import prototype
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.network import items
from autotune.engines.network.dump_outlet import DumpOutlet
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import ReceivedSamples, ReceivedVoltages
from autotune.engines.network.receiver import Listening
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.streams.in_memory import ArraySource, KeptVisibilities
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import REAL_HIGH, REAL_LOW
from autotune.engines.x.engine import XEngine, visibility_info

from ..stand_ins import good_antennas
from .ports import free_ports
from .test_outlets import Receiver

N_ANTENNAS, C, PACKET, N_PACKETS, CHUNK, HEAP = 3, 128, 1024, 192, 16, 32
PER_DUMP = 2
BITS = 10
WIDTH = PACKET * BITS // 8


@dataclass
class Wire:
    """Where everything goes, by one transport."""

    transport: str

    def places(self, n: int) -> list[Any]:
        if self.transport == "inproc":
            return [spead2.InprocQueue() for _ in range(n)]
        kind = socket.SOCK_STREAM if self.transport == "tcp" else socket.SOCK_DGRAM
        return [Endpoint("127.0.0.1", port) for port in free_ports(n, kind)]

    def listening(self, places: list[Any]) -> Listening:
        return Listening([[place] for place in places], self.transport, is_lossless=True)  # however late a thread is


def info(antenna: int, first: int) -> SampleInfo:
    return SampleInfo(BITS, 2, 1e6, PACKET, first_timestamp=first, antenna=f"m{antenna}")


def samples(antenna: int) -> np.ndarray:
    return np.random.default_rng(antenna).integers(0, 256, (2, N_PACKETS * WIDTH), dtype=np.uint8)


def settings(bits: int, nibbles: str = REAL_LOW) -> BandSettings:
    return BandSettings(
        C, prototype(C, 4), bits, HEAP, heaps_per_batch=2, max_delay_diff=4096, nibbles=nibbles, whole_heaps=True
    )


def output(antenna: int, first: int, band: BandSettings, sink: Any) -> Output:
    delays = [DelayModel(Piece(first, 3.25 * antenna + pol, 1e-6 * (antenna - 1), 0.3)) for pol in range(2)]
    return Output(band, sink, delays, Gains(C, 2, 0.02))


def plain_heap(pol: int, time: int, payload: np.ndarray) -> spead2.send.Heap:
    """A digitiser's heap, of what is said of the wire alone."""
    heap = spead2.send.Heap(spead2.Flavour(4, 64, 48, 0))
    for number, value in ((0x1600, time % (1 << 48)), (0x3101, pol), (0x3102, 0)):
        heap.add_item(spead2.Item(number, "", "", (), format=[("u", 48)], value=value))
    heap.add_item(spead2.Item(0x3300, "", "", payload.shape, payload.dtype, value=payload))
    heap.repeat_pointers = True
    return heap


def digitise(wire: Wire, to: list[Any], rows: np.ndarray, first: int, order: list[tuple[int, int]]) -> None:
    """Send packets, (number, polarisation) each, of which each polarisation goes to a place of its own."""
    config = spead2.send.StreamConfig(max_packet_size=WIDTH + items.DIGITISER_HEADER_BYTES, max_heaps=4096, rate=2e6)
    streams: list[Any]
    if wire.transport == "inproc":
        streams = [spead2.send.InprocStream(spead2.ThreadPool(1), [queue], config) for queue in to]
    else:
        kind = spead2.send.TcpStream if wire.transport == "tcp" else spead2.send.UdpStream
        streams = [kind(spead2.ThreadPool(1), [(each.host, each.port)], config) for each in to]
    for number, pol in order:
        part = rows[pol, number * WIDTH : (number + 1) * WIDTH]
        streams[pol].send_heap(plain_heap(pol, first + number * PACKET, part))
    for stream in streams:
        heap = spead2.send.Heap(spead2.Flavour(4, 64, 48, 0))
        heap.add_end()
        stream.send_heap(heap)


def kernels(backend: HostBackend) -> Kernels:
    return Kernels(backend, lambda line: None)


def offline(first: int, bits: int, received: list[np.ndarray]) -> KeptVisibilities:
    backend, sink = HostBackend(), KeptVisibilities()
    sources = [ArraySource(samples(a), info(a, first), received[a]) for a in range(N_ANTENNAS)]
    outputs = [output(a, first, settings(bits), None) for a in range(N_ANTENNAS)]
    engine = FXEngine(
        backend,
        sources,
        outputs,
        sink,
        kernels(backend),
        accumulate=PER_DUMP,
        chunk_samples=CHUNK * PACKET,
        complete_dumps=True,
    )
    engine.run()
    return sink


@dataclass
class Ran:
    """What came out of the network."""

    dumps: list[Receiver]  # by destination
    samples: list[ReceivedSamples]
    voltages: list[ReceivedVoltages]


def on_air(wire: Wire, first: int, band: BandSettings, n_destinations: int, orders: list[list[tuple[int, int]]]) -> Ran:
    """Run it all in this process."""
    sample_places = [wire.places(2) for _ in range(N_ANTENNAS)]
    voltage_places = [wire.places(n_destinations) for _ in range(N_ANTENNAS)]
    made = [voltage_info(info(a, first), band) for a in range(N_ANTENNAS)]
    width = C // n_destinations
    dump_receivers, received, work = [], [], list[Callable[[], Any]]()
    for destination in range(n_destinations):
        (place,) = wire.places(1)
        receiver = Receiver(wire.transport, getattr(place, "port", 0))
        dump_receivers.append(receiver)
        antennas = [replace(each, n_channels=width) for each in made]
        places = [voltage_places[a][destination] for a in range(N_ANTENNAS)]
        part = {"first_channel": destination * width, "is_live": False, "near": first, "confirm": 1}
        source = ReceivedVoltages(antennas, wire.listening(places), **part)  # type: ignore[arg-type]
        received.append(source)
        backend = HostBackend()
        sink = DumpOutlet(
            visibility_info(antennas, PER_DUMP),
            wire.transport,
            [receiver.destination],
            first_channel=destination * width,
            n_channels=C,
            is_paced=False,
        )
        engine = XEngine(
            backend,
            source,
            sink,
            kernels(backend),
            complete_dumps=True,
            accumulate=PER_DUMP,
            batches_per_chunk=4,  # type: ignore[arg-type]
        )
        work.append(lambda engine=engine, sink=sink: (engine.run(), sink.close()))  # type: ignore[misc]
    sources = []
    for antenna in range(N_ANTENNAS):
        samples_in = ReceivedSamples(
            info(antenna, 0), wire.listening(sample_places[antenna]), is_live=False, near=first, confirm=1
        )
        sources.append(samples_in)
        sink_out = VoltageOutlet(
            made[antenna],
            antenna,
            N_ANTENNAS,
            wire.transport,
            voltage_places[antenna],
            is_paced=wire.transport == "udp",
        )
        backend = HostBackend()
        out = output(antenna, first, band, sink_out)
        f_engine = FEngine(backend, samples_in, [out], CHUNK, kernels(backend))  # type: ignore[arg-type]
        work.append(lambda engine=f_engine, sink=sink_out: (engine.run(), sink.close()))  # type: ignore[misc]
        rows = samples(antenna)
        work.append(
            lambda to=sample_places[antenna], rows=rows, order=orders[antenna]: digitise(wire, to, rows, first, order)  # type: ignore[misc]
        )
    errors: list[BaseException] = []

    def guarded(run: Callable[[], Any]) -> None:
        try:
            run()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(run,), daemon=True) for run in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors and not any(thread.is_alive() for thread in threads)
    for receiver in dump_receivers:
        receiver.ends()
    for source in (*sources, *received):
        source.close()
    return Ran(dump_receivers, sources, received)


def all_packets() -> list[tuple[int, int]]:
    return [(number, pol) for number in range(N_PACKETS) for pol in range(2)]


def compare(ran: Ran, expected: KeptVisibilities) -> None:
    width = C // len(ran.dumps)
    for place, receiver in enumerate(ran.dumps):
        found = {int(heap["timestamp"]): heap["xeng_raw"] for heap in receiver.heaps}
        assert len(found) == len(receiver.heaps)
        assert sorted(found) == sorted(time % (1 << 48) for time in expected.timestamps)
        for time, visibilities in zip(expected.timestamps, expected.visibilities, strict=True):
            part = visibilities[place * width : (place + 1) * width]
            assert np.array_equal(found[time % (1 << 48)], part.reshape(width, -1, 2))


WRAPS = (1 << 48) - 64 * PACKET  # in the middle of the stream; whole chunks before


@pytest.mark.parametrize(
    ("transport", "bits", "n_destinations", "first", "nibbles"),
    [
        ("inproc", 8, 1, 0, REAL_LOW),
        ("inproc", 4, 2, WRAPS, REAL_LOW),
        ("inproc", 4, 2, WRAPS, REAL_HIGH),
        ("tcp", 8, 2, 1 << 50, REAL_LOW),
        ("udp", 8, 1, WRAPS, REAL_LOW),
    ],
)
def test_dumps_are_those_of_engines_without_a_network(
    transport: str, bits: int, n_destinations: int, first: int, nibbles: str
) -> None:
    """Whichever nibble has the real part on the wire: without a network it is the low one."""
    expected = offline(first, bits, [np.ones((2, N_PACKETS), bool)] * N_ANTENNAS)
    assert len(expected.timestamps) > 3
    ran = on_air(Wire(transport), first, settings(bits, nibbles), n_destinations, [all_packets()] * N_ANTENNAS)
    compare(ran, expected)
    for source in ran.samples:
        assert source.receiver is not None
        counts = source.receiver.counts
        assert counts["placed"] == 2 * N_PACKETS and counts["stops"] == 2
        assert counts["heaps"] == counts["placed"] + counts["stops"]


def hit(rng: np.random.Generator, share: float) -> tuple[list[tuple[int, int]], np.ndarray, int]:
    """Returns the packets of a stream in which some are lost, sent twice or exchanged; which came; and repeats."""
    order, came, n_repeated = list[tuple[int, int]](), np.ones((2, N_PACKETS), bool), 0
    for number, pol in all_packets():
        if number >= CHUNK and rng.random() < share:
            came[pol, number] = False
            continue
        twice = rng.random() < share
        order += [(number, pol)] * (1 + twice)
        n_repeated += twice
    for at in range(2 * CHUNK, len(order) - 8):
        if rng.random() < share:
            other = at + int(rng.integers(1, 8))
            order[at], order[other] = order[other], order[at]
    return order, came, n_repeated


@pytest.mark.parametrize("transport", ["inproc", "tcp"])
def test_of_packets_lost_repeated_and_exchanged_each_is_in_one_counter(transport: str) -> None:
    rng = np.random.default_rng(11)
    streams = [hit(rng, 0.02) for _ in range(N_ANTENNAS)]
    expected = offline(0, 8, [came for _, came, _ in streams])
    assert not good_antennas(expected.weights)[1:-1].all()
    ran = on_air(Wire(transport), 0, settings(8), 2, [order for order, _, _ in streams])
    compare(ran, expected)
    for source, (order, came, n_repeated) in zip(ran.samples, streams, strict=True):
        assert source.receiver is not None and n_repeated > 0 and not came.all()
        counts = source.receiver.counts
        assert (counts["placed"], counts["repeated"], counts["stops"]) == (came.sum(), n_repeated, 2)
        assert counts["heaps"] == len(order) + 2 and counts["too_old"] == counts["incomplete"] == 0
    for voltages in ran.voltages:
        assert voltages.receiver is not None
        counts = voltages.receiver.counts
        others = ("repeated", "jumped", "early", "foreign", "wrong_size", "off_grid", "too_old", "incomplete")
        assert all(counts[name] == 0 for name in others) and counts["stops"] == N_ANTENNAS
        assert counts["heaps"] == counts["placed"] + counts["no_data"] + counts["stops"]
