"""A place of TCP takes the first sender whose bytes begin as SPEAD does; all others cost nothing."""

import os
import socket
from collections.abc import Iterator
from random import Random

import pytest

from autotune.engines.network import tcp_door
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.tcp_door import PREFIX_BYTES, TcpDoor, whole_packets

from ...waiting import wait_until
from .ports import free_ports

HEAD = bytes((0x53, 4, 2, 6, 0, 0, 0, 5))


def packet(payload: bytes, n_items: int = 5) -> bytes:
    """A packet whose items, but for the length of the payload, are values in place."""
    items = [0x8001 << 48 | number for number in range(n_items)]
    items[n_items // 2] = 0x8004 << 48 | len(payload)
    return HEAD[:7] + bytes((n_items,)) + b"".join(item.to_bytes(8, "big") for item in items) + payload


PACKET = packet(bytes(4048))
STRANGERS = {
    "nothing": b"",
    "a web browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "noise": b"\x9f" + os.urandom(63),
    "another magic number": b"\x54" + HEAD[1:],
    "another version": HEAD[:1] + b"\x03" + HEAD[2:],
    "other widths": HEAD[:3] + b"\x05" + HEAD[4:],
    "no zeros": HEAD[:5] + b"\x01" + HEAD[6:],
    "no items": HEAD[:7] + b"\x00",
}


@pytest.fixture
def place() -> Endpoint:
    return Endpoint("127.0.0.1", free_ports(1, socket.SOCK_STREAM)[0])


@pytest.fixture
def door(place: Endpoint) -> Iterator[TcpDoor]:
    door = TcpDoor(place, 1 << 20)
    yield door
    door.close()


def connected(place: Endpoint, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection((place.host, place.port), timeout=10)
    connection.sendall(data)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end closes a connection, with or without reading what was sent."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def taken(door: TcpDoor, n: int) -> bytes:
    """The next bytes that come through, as spead2 reads them; its connection is closed at once."""
    inner, _ = door.inner.accept()
    with inner:
        inner.settimeout(10)
        data = b""
        while len(data) < n and (more := inner.recv(n - len(data))):
            data += more
        return data


@pytest.mark.parametrize("what", STRANGERS)
@pytest.mark.parametrize("stays", [True, False])
def test_strangers_cost_nothing(what: str, stays: bool, door: TcpDoor, place: Endpoint) -> None:
    strangers = [connected(place, STRANGERS[what]) for _ in range(20)]
    for each in strangers * (not stays):
        each.close()
    assert what == "nothing" or not stays or all(map(is_closed, strangers))
    with connected(place, PACKET[:5]) as sender:
        sender.sendall(PACKET[5:])
        assert taken(door, len(PACKET)) == PACKET and not door.is_away
    wait_until(lambda: door.is_away)
    door.end()
    wait_until(lambda: door.has_ended)
    for each in strangers:
        each.close()


def test_the_place_is_free_for_one_sender(door: TcpDoor, place: Endpoint) -> None:
    with connected(place) as idle, connected(place, PACKET) as sender:
        assert taken(door, 10) == PACKET[:10]

        def is_refused() -> bool:
            try:
                connected(place).close()
            except ConnectionRefusedError:
                return True
            return False

        wait_until(is_refused)
        assert idle.recv(1) == b"" and sender.fileno() > 0


def test_a_sender_may_come_again_and_only_whole_packets_come_through(place: Endpoint) -> None:
    door = TcpDoor(place, 1 << 20)
    first, second = (packet(bytes((kind,)) * 1000) for kind in (1, 2))
    with connected(place, 3 * first + first[:500]):
        assert not door.is_away
    wait_until(lambda: door.is_away)
    with connected(place, 2 * second):
        wait_until(lambda: not door.is_away)
    wait_until(lambda: door.is_away)
    assert not door.has_ended
    door.end()
    assert taken(door, 1 << 20) == 3 * first + 2 * second
    wait_until(lambda: door.has_ended)
    with pytest.raises(ConnectionRefusedError):
        connected(place)
    door.close()


@pytest.mark.parametrize("seed", range(20))
def test_whole_packets_are_found_wherever_a_stream_is_cut(seed: int) -> None:
    random = Random(seed)
    prefix = HEAD[:PREFIX_BYTES]
    ends, stream = [0], b""
    for _ in range(random.randint(1, 8)):
        stream += packet(random.randbytes(random.randint(0, 90)), random.randint(1, 6))
        ends.append(len(stream))
    for filled in range(len(stream) + 1):
        assert whole_packets(bytearray(stream), filled, prefix) == max(end for end in ends if end <= filled)


@pytest.mark.parametrize("seed", range(20))
def test_samples_that_begin_as_a_packet_does_lose_nothing(seed: int) -> None:
    random = Random(seed)
    prefix = HEAD[:PREFIX_BYTES]
    false_ones = (prefix, prefix + b"\x00\x01" + bytes(8), prefix[:4], packet(b"x"), packet(b"x")[:-1])
    made = (random.choice(false_ones) + random.randbytes(random.randint(0, 40)) for _ in range(8))
    stream = b"".join(packet(samples, random.randint(1, 6)) for samples in made)
    piece, passed = bytearray(), b""
    for byte in range(0, len(stream), step := random.randint(1, 60)):
        piece += stream[byte : byte + step]
        whole = whole_packets(piece, len(piece), prefix)
        passed += piece[:whole]
        del piece[:whole]
    assert passed == stream[: len(passed)] and passed + piece == stream
    assert not piece or piece.startswith(prefix), "what is kept begins as a packet does"


def test_it_may_be_asked_to_end_often(door: TcpDoor) -> None:
    """A receiver asks each time that it looks."""
    for _ in range(5000):
        door.end()


def test_a_place_that_another_program_took_meanwhile_ends(
    door: TcpDoor, place: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_taken(place: Endpoint, socket_bytes: int) -> socket.socket:
        raise OSError("in use")

    monkeypatch.setattr(tcp_door, "_listening", is_taken)
    with connected(place, PACKET):
        assert taken(door, len(PACKET)) == PACKET
    wait_until(lambda: door.is_away and door.has_ended)


def test_what_waits_is_bounded_and_the_oldest_gives_way(
    door: TcpDoor, place: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp_door, "MOST_WAITING", 3)
    waiting = [connected(place) for _ in range(5)]
    assert [each.recv(1) for each in waiting[:2]] == [b"", b""]
    waiting[2].sendall(PACKET)
    assert taken(door, len(PACKET)) == PACKET
    for each in waiting:
        each.close()


@pytest.mark.parametrize("state", ["alone", "idle", "sending"])
def test_it_closes_whatever_happens(state: str, place: Endpoint) -> None:
    door = TcpDoor(place, 1 << 16)
    connection = None if state == "alone" else connected(place)
    if state == "sending":
        assert connection is not None
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):  # nobody reads, so it has to wait
            while True:
                connection.sendall(PACKET)
    door.close()
    door.close()
    TcpDoor(place, 1 << 16).close()


def test_a_port_in_use_is_an_error(door: TcpDoor, place: Endpoint) -> None:
    with pytest.raises(OSError, match="in use"):
        TcpDoor(place, 1 << 16)
