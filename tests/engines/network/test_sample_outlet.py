"""What a digitiser sends: packets as spead2 makes them, to the addresses that take turns, with faults on purpose."""

import socket

import numpy as np
import pytest
import spead2
import spead2.send

from autotune import UsageError
from autotune.engines.network import items
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.sample_outlet import SampleOutlet, damage
from autotune.engines.streams.samples import SampleInfo

PACKET, BITS = 64, 10
WIDTH = PACKET * BITS // 8
INFO = SampleInfo(BITS, 2, 1e6, PACKET)
STOP = (1 << 63 | 6 << 48 | 2).to_bytes(8, "big")  # the item of a stop heap
HAS_TIME = (1 << 15 | 0x1600).to_bytes(2, "big")  # of a packet of samples
WRAPS = (1 << 48) - PACKET


class UdpListener:
    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(60)
        self.endpoint = Endpoint("127.0.0.1", self.socket.getsockname()[1])

    def packets(self) -> list[bytes]:
        """What came, until the stop heap."""
        found = []
        while STOP not in (packet := self.socket.recv(1 << 16)):
            found.append(packet)
        self.socket.close()
        return found


def by_spead2(number: int, time: int, pol: int, saturated: int, payload: np.ndarray) -> bytes:
    heap = spead2.send.Heap(spead2.Flavour(4, 64, 48, 0))
    status = saturated << 32 | (2 if saturated else 0)
    for item, value in ((0x1600, time % (1 << 48)), (0x3101, pol), (0x3102, status)):
        heap.add_item(spead2.Item(item, "", "", (), format=[("u", 48)], value=value))
    heap.add_item(spead2.Item(0x3300, "", "", payload.shape, payload.dtype, value=payload))
    heap.repeat_pointers = True
    (packet,) = spead2.send.PacketGenerator(heap, number, items.DIGITISER_HEADER_BYTES + WIDTH)
    return bytes(packet)


def payloads(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 256, (n, WIDTH), dtype=np.uint8)


def test_packets_are_those_that_spead2_makes_of_the_same_heaps() -> None:
    outlet = SampleOutlet(INFO, "udp", [[Endpoint("127.0.0.1", 9)]] * 2)
    saturated = np.array([0, 3, PACKET])
    for first in range(2):
        made = outlet.packets(WRAPS + PACKET * np.arange(3), first, payloads(3), saturated)
        for place in range(3):
            number, time = 2 * (3 * first + place), WRAPS + PACKET * place
            assert made[place].tobytes() == by_spead2(number, time, first, int(saturated[place]), payloads(3)[place])


def test_packets_of_a_polarisation_go_to_its_addresses_in_turn() -> None:
    listeners = [UdpListener() for _ in range(3)]
    outlet = SampleOutlet(INFO, "udp", [[listeners[0].endpoint, listeners[1].endpoint], [listeners[2].endpoint]])
    for pol in range(2):
        made = outlet.packets(PACKET * np.arange(5), pol, payloads(5), np.zeros(5, np.int64))
        outlet.send(pol, made, np.arange(5))
    outlet.close()
    assert (outlet.n_sent, outlet.n_failed) == (10, 0)
    came = [[p for p in each.packets() if p[40:42] == HAS_TIME] for each in listeners]
    first = [int.from_bytes(p[42:48], "big") // PACKET for p in came[0]]
    second = [int.from_bytes(p[42:48], "big") // PACKET for p in came[1]]
    assert (first, second, len(came[2])) == ([0, 2, 4], [1, 3], 5)


def test_what_nobody_takes_is_counted() -> None:
    listener = UdpListener()
    listener.socket.close()
    outlet = SampleOutlet(INFO, "udp", [[listener.endpoint]] * 2)
    tcp = SampleOutlet(INFO, "tcp", [[listener.endpoint]] * 2)
    made = outlet.packets(PACKET * np.arange(4), 0, payloads(4), np.zeros(4, np.int64))
    tcp.send(0, made, np.arange(4))
    assert (tcp.n_sent, tcp.n_failed) == (0, 4)
    outlet.send(0, made, np.arange(4))
    assert outlet.n_sent + outlet.n_failed == 4
    outlet.close()
    tcp.close()


def test_damage_changes_each_packet_and_nothing_in_front_of_where_it_begins() -> None:
    before = np.zeros((50, 100), np.uint8)
    after = before.copy()
    damage(after, np.random.default_rng(1), 40)
    assert (after != before).any(axis=1).all() and not after[:, :40].any()


@pytest.mark.parametrize(
    ("transport", "to", "says"),
    [
        ("udp", [[Endpoint("127.0.0.1", 9)]], "1 polarisations"),
        ("tcp", [[Endpoint("127.0.0.1", 9)] * 2] * 2, "with tcp it can have only one"),
        ("ibv", [[Endpoint("127.0.0.1", 9)]] * 2, "'ibv'"),
        ("udp", [[Endpoint("no.such.host.invalid", 9)]] * 2, "no.such.host.invalid:9"),
    ],
)
def test_refusals(transport: str, to: list[list[Endpoint]], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        SampleOutlet(INFO, transport, to)
