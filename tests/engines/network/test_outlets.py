"""What leaves, as a plain receiver of spead2's takes it: every transport, destinations, 48-bit times, refusals."""

import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import spead2
import spead2.recv

from autotune import UsageError
from autotune.engines.network import outlet as module
from autotune.engines.network.dump_outlet import DumpOutlet
from autotune.engines.network.endpoints import Endpoint, endpoints
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.visibilities import VisibilityInfo
from autotune.engines.streams.voltages import REAL_HIGH, VoltageInfo

from ...waiting import wait_until
from ..stand_ins import weights_of
from .ports import free_ports

C, HEAP, N_HEAPS = 64, 32, 12
INFO = VoltageInfo(C, 2, 8, HEAP, 2 * C, SampleInfo(10, 2, 1e6, 256))
FIRST = (1 << 48) - 5 * INFO.heap_samples  # the sixth heap's time has wrapped


class Receiver:
    """A receiver that knows what is on the wire from its descriptors alone. Values by time: {item: value}."""

    def __init__(self, transport: str, port: int = 0) -> None:
        self.transport, self.port = transport, port
        config = spead2.recv.StreamConfig(max_heaps=64)
        self._stream = spead2.recv.Stream(spead2.ThreadPool(1), config)
        self.queue = spead2.InprocQueue()
        if transport == "inproc":
            self._stream.add_inproc_reader(self.queue)
        elif transport == "tcp":
            self._stream.add_tcp_reader(port, bind_hostname="127.0.0.1", max_size=1 << 16)
        else:
            self._stream.add_udp_reader(port, bind_hostname="127.0.0.1", buffer_size=4 << 20)
        self.heaps: list[dict[str, Any]] = []
        self.numbers: list[int] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        items = spead2.ItemGroup()
        for heap in self._stream:
            updated = items.update(heap)
            if "timestamp" in updated:
                self.heaps.append({name: np.array(item.value) for name, item in updated.items()})
                self.numbers.append(heap.cnt)

    @property
    def destination(self) -> Any:
        return self.queue if self.transport == "inproc" else Endpoint("127.0.0.1", self.port)

    @property
    def n_packets(self) -> int:
        return int(self._stream.stats["packets"])

    def ends(self) -> None:
        """Wait for the stop heap."""
        self._thread.join(120)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self._stream.stop()
        self._thread.join(120)


def receivers(transport: str, n: int) -> list[Receiver]:
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    return [Receiver(transport, port) for port in free_ports(n, kind)]


def voltages(info: VoltageInfo, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-127, 128, (N_HEAPS, *info.heap_shape), dtype=np.int8)


def send(sink: VoltageOutlet, made: np.ndarray, first: int = FIRST) -> None:
    """Write heaps by way of one buffer, as an engine does."""
    buffer = np.empty_like(made[:3])
    for at in range(0, len(made), 3):
        buffer[...] = made[at : at + 3]
        times = first + INFO.heap_samples * np.arange(at, at + 3)
        sink.write(times, buffer, np.zeros((3, 2), np.uint32), np.ones((3, INFO.spectra_per_heap, 2), bool))
        buffer[...] = 0x55  # nothing of it is needed any more


def test_heaps_with_holes_do_not_leave() -> None:
    made, (receiver,) = voltages(INFO), receivers("inproc", 1)
    sink = VoltageOutlet(INFO, 1, 4, "inproc", [receiver.destination], is_paced=False)
    present = np.ones((N_HEAPS, INFO.spectra_per_heap, 2), bool)
    present[1, -1, 1] = present[4] = False
    sink.write(FIRST + INFO.heap_samples * np.arange(N_HEAPS), made, np.zeros((N_HEAPS, 2), np.uint32), present)
    sink.close()
    receiver.ends()
    numbers = [(int(heap["timestamp"]) - FIRST) % (1 << 48) // INFO.heap_samples for heap in receiver.heaps]
    assert numbers == [number for number in range(N_HEAPS) if number not in (1, 4)]
    assert all(np.array_equal(heap["feng_raw"], made[n]) for n, heap in zip(numbers, receiver.heaps, strict=True))
    assert sink.n_heaps == N_HEAPS - 2 and sink.n_bytes == made.nbytes * (N_HEAPS - 2) // N_HEAPS


@pytest.mark.parametrize("transport", ["inproc", "udp", "tcp"])
@pytest.mark.parametrize("n_destinations", [1, 2])
def test_each_destination_has_its_channels_of_all_heaps(transport: str, n_destinations: int) -> None:
    made, taken = voltages(INFO), receivers(transport, n_destinations)
    sink = VoltageOutlet(INFO, 1, 4, transport, [each.destination for each in taken], is_paced=transport == "udp")
    send(sink, made)
    sink.close()
    width = C // n_destinations
    for place, receiver in enumerate(taken):
        receiver.ends()
        assert len(receiver.heaps) == N_HEAPS
        for number, heap in enumerate(receiver.heaps):
            assert int(heap["timestamp"]) == (FIRST + number * INFO.heap_samples) % (1 << 48)
            assert (int(heap["feng_id"]), int(heap["frequency"])) == (1, place * width)
            assert np.array_equal(heap["feng_raw"], made[number, place * width : (place + 1) * width])
        assert all(number % 4 == 1 for number in receiver.numbers) and len(set(receiver.numbers)) == N_HEAPS
    assert (sink.n_heaps, sink.n_bytes, sink.n_failed) == (N_HEAPS * n_destinations, made.nbytes, 0)


def test_voltages_of_four_bits_are_described_with_the_real_part_high() -> None:
    info = replace(INFO, bits=4, nibbles=REAL_HIGH)
    parts = np.random.default_rng(7).integers(-7, 8, (N_HEAPS, *info.heap_shape, 2), dtype=np.int8)
    made, (receiver,) = (parts[..., 0] << 4) | (parts[..., 1] & 15), receivers("inproc", 1)
    sink = VoltageOutlet(info, 0, 1, "inproc", [receiver.destination], is_paced=False)
    send(sink, made)
    sink.close()
    receiver.ends()
    assert len(receiver.heaps) == N_HEAPS
    for heap, expected in zip(receiver.heaps, parts, strict=True):
        assert np.array_equal(heap["feng_raw"], expected)


def test_voltages_of_four_bits_with_the_real_part_low_are_described_as_bytes() -> None:
    """SPEAD has no words for them, and a receiver that follows the descriptors must not exchange the parts."""
    info = replace(INFO, bits=4)
    made = np.random.default_rng(7).integers(-128, 128, (N_HEAPS, *info.heap_shape), dtype=np.int8)
    (receiver,) = receivers("inproc", 1)
    sink = VoltageOutlet(info, 0, 1, "inproc", [receiver.destination], is_paced=False)
    send(sink, made)
    sink.close()
    receiver.ends()
    assert np.array_equal([heap["feng_raw"] for heap in receiver.heaps], made.view(np.uint8))


@pytest.mark.parametrize("transport", ["inproc", "udp", "tcp"])
def test_dumps_go_to_all_destinations(transport: str) -> None:
    info = VisibilityInfo(16, 4 * INFO.heap_samples, 4 * INFO.spectra_per_heap, (INFO.samples,) * 3)
    made = np.random.default_rng(2).integers(-(1 << 31), 1 << 31, (5, 16, 6, 4, 2), dtype=np.int64).astype(np.int32)
    taken = receivers(transport, 2)
    to = [each.destination for each in taken]
    sink = DumpOutlet(info, transport, to, first_channel=32, n_channels=64, is_paced=transport == "udp")
    buffer = np.empty_like(made[0])
    for number, dump in enumerate(made):
        buffer[...] = dump
        sink.write(FIRST + number * info.dump_samples, buffer, weights_of(np.ones(3, bool)), 0)
    sink.close()
    for receiver in taken:
        receiver.ends()
        assert [int(heap["frequency"]) for heap in receiver.heaps] == [32] * 5
        times = [(FIRST + number * info.dump_samples) % (1 << 48) for number in range(5)]
        assert [int(heap["timestamp"]) for heap in receiver.heaps] == times
        assert all(
            np.array_equal(h["xeng_raw"], v.reshape(16, 24, 2)) for h, v in zip(receiver.heaps, made, strict=True)
        )
        assert all(number % 4 == 2 for number in receiver.numbers)
    assert (sink.n_dumps, sink.n_failed) == (5, 0)


def test_a_connection_that_is_refused_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.1)
    (port,) = free_ports(1, socket.SOCK_STREAM)
    sink = VoltageOutlet(INFO, 0, 1, "tcp", [Endpoint("127.0.0.1", port)], is_paced=False)
    send(sink, voltages(INFO))
    assert sink.n_failed == N_HEAPS + 1, "heaps and a description"
    receiver = Receiver("tcp", port)
    connection = sink._outlet._connections[0]  # type: ignore[attr-defined]
    wait_until(lambda: connection.is_open)
    sink._describe()
    send(sink, voltages(INFO))
    sink.close()
    receiver.ends()
    assert len(receiver.heaps) == N_HEAPS and sink.n_failed == N_HEAPS + 1


def test_a_receiver_that_does_not_read_is_given_up_and_the_other_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.1)
    info, patience_s = replace(INFO, n_channels=2048, step=4096), 1.0  # more than sockets hold
    silent = socket.create_server(("127.0.0.1", 0))
    silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    (receiver,) = receivers("tcp", 1)
    to = [Endpoint(*silent.getsockname()), receiver.destination]
    sink = VoltageOutlet(info, 0, 1, "tcp", to, is_paced=False, patience_s=patience_s)
    accepted, _ = silent.accept()
    silent.close()
    made = np.concatenate([voltages(info, seed) for seed in range(4)])
    began = time.monotonic()
    send(sink, made)
    assert time.monotonic() - began < len(made) * patience_s / 2, "it is waited for once, and not for each heap"
    sink.close()
    accepted.close()
    receiver.ends()
    assert len(receiver.heaps) == len(made) and 0 < sink.n_failed <= len(made) + 1
    assert all(np.array_equal(h["feng_raw"], v[1024:]) for h, v in zip(receiver.heaps, made, strict=True))


def test_paced_heaps_are_spread_over_their_time() -> None:
    info = replace(INFO, n_channels=1024, step=2048, samples=replace(INFO.samples, sample_rate_hz=1e6))
    (receiver,) = receivers("inproc", 1)
    sink = VoltageOutlet(info, 0, 1, "inproc", [receiver.destination])
    began = time.monotonic()
    send(sink, voltages(info))
    took = time.monotonic() - began
    stream_s = N_HEAPS * info.heap_samples / 1e6
    sink.close()
    assert took > 0.7 * stream_s, "heaps leave a tenth faster than they come"


@pytest.mark.parametrize("transport", ["inproc", "udp", "tcp"])
@pytest.mark.parametrize("payload", [64, 1000, 32768])
def test_packets_have_the_payload_that_they_are_given(transport: str, payload: int) -> None:
    made, (receiver,) = voltages(INFO), receivers(transport, 1)
    sink = VoltageOutlet(INFO, 0, 1, transport, [receiver.destination], is_paced=False, payload=payload)
    sink.write(np.array([FIRST]), made[:1], np.zeros((1, 2), np.uint32), np.ones((1, INFO.spectra_per_heap, 2), bool))
    sink.close()
    receiver.ends()
    n_others = -(-400 // payload) + 1 if payload == 64 else 2  # descriptors, and the stop heap
    n_packets = receiver.n_packets - n_others
    assert n_packets == -(-made[0].nbytes // payload) and np.array_equal(receiver.heaps[0]["feng_raw"], made[0])


def test_packets_are_as_large_as_the_network_takes_whole_and_larger_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "IP_BYTES", 65536 - 1472)  # as if loopback were Ethernet
    made, (receiver,) = voltages(INFO), receivers("udp", 1)
    sink = VoltageOutlet(INFO, 0, 1, "udp", [receiver.destination], is_paced=False)
    sink.write(np.array([FIRST]), made[:1], np.zeros((1, 2), np.uint32), np.ones((1, INFO.spectra_per_heap, 2), bool))
    sink.close()
    receiver.ends()
    assert receiver.n_packets - 2 == -(-made[0].nbytes // 1392)
    with pytest.raises(UsageError) as caught:
        VoltageOutlet(INFO, 0, 1, "udp", endpoints("127.0.0.1:7000"), payload=8192)
    why = "the network to 127.0.0.1:7000 takes no packets with 8192 bytes of payload: give 1392"
    assert str(caught.value) == why


def test_an_outlet_that_is_asked_to_end_spreads_nothing_any_more() -> None:
    info = replace(INFO, n_channels=1024, step=2048, samples=replace(INFO.samples, sample_rate_hz=1e4))
    (receiver,) = receivers("inproc", 1)
    sink = VoltageOutlet(info, 0, 1, "inproc", [receiver.destination], is_asked=lambda: True)
    send(sink, voltages(info))  # which would take minutes
    sink.close()
    receiver.ends()
    assert len(receiver.heaps) == N_HEAPS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:7000", [("127.0.0.1", 7000)]),
        ("correlator", [("correlator", 7148)]),
        ("239.1.1.254+2:7148", [("239.1.1.254", 7148), ("239.1.1.255", 7148), ("239.1.2.0", 7148)]),
        ("[::1]:7000", [("::1", 7000)]),
    ],
)
def test_endpoints_are_read(text: str, expected: Sequence[tuple[str, int]]) -> None:
    found = endpoints(text)
    assert [(each.host, each.port) for each in found] == list(expected)
    assert found[0].is_multicast == text.startswith("239.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.2.3.4:0", "ports are 1 to 65535"),
        ("1.2.3.4:70000", "ports are 1 to 65535"),
        ("a b:7148", "is not an address"),
        ("", "is not an address"),
        ("host+3:7148", "is a name or too high an address for that"),
        ("239.1.1.1+5000:7148", "4096 are the most"),
        ("255.255.255.255+1:7148", "is a name or too high an address for that"),
    ],
)
def test_what_is_not_an_endpoint_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        endpoints(text)


def test_what_cannot_be_sent_is_refused() -> None:
    queue = spead2.InprocQueue()
    with pytest.raises(UsageError, match="64 channels cannot be shared out evenly to 3"):
        VoltageOutlet(INFO, 0, 1, "inproc", [queue] * 3)
    with pytest.raises(UsageError, match="feng_id=4 must be an antenna's index, 0 to 3"):
        VoltageOutlet(INFO, 4, 4, "inproc", [queue])
    with pytest.raises(UsageError, match="transport is 'sctp'; it may be udp, ibv, tcp or inproc"):
        VoltageOutlet(INFO, 0, 1, "sctp", [queue])
    with pytest.raises(UsageError, match=r"nothing can be sent to nowhere\.invalid:7148"):
        VoltageOutlet(INFO, 0, 1, "udp", endpoints("nowhere.invalid"))
