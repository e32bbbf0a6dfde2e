"""What a source says of each sender: where its statements contradict the settings, what it misses, and who stops."""

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import spead2
import spead2.send

from autotune.engines.network import items
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import Received, ReceivedSamples, ReceivedVoltages
from autotune.engines.network.receiver import Listening
from autotune.engines.network.senders import Sender
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import REAL_HIGH, REAL_LOW, VoltageInfo

from ...waiting import wait_until
from .plain_spead import data_heap, described, stop_heap
from .ports import free_ports

C, SPECTRA, STEP, BATCHES = 64, 8, 128, 4
HEAP = SPECTRA * STEP  # samples
ANTENNAS = [
    VoltageInfo(C, 2, 8, SPECTRA, STEP, SampleInfo(10, 2, 1e6, 1, antenna=name)) for name in ("m000", "m001", "m002")
]
IMMEDIATES = (items.TIMESTAMP, items.FENG_ID, items.FREQUENCY)


class Wire:
    """Heaps of all senders by one queue; their numbers are given."""

    def __init__(self) -> None:
        self.queue = spead2.InprocQueue()
        config = spead2.send.StreamConfig(max_packet_size=4096, max_heaps=4096)
        self._stream = spead2.send.InprocStream(spead2.ThreadPool(1), [self.queue], config)
        self.n = 0

    def send(self, heap: spead2.send.Heap, number: int) -> None:
        self._stream.send_heap(heap, cnt=number)
        self.n += 1

    def voltages(self, first: int, end: int, *senders: int, channel: int = 0, off: int = 0) -> None:
        """Sends heaps from one number to before another; ``off`` is added to what they say theirs is on the wire."""
        for k in range(first, end):
            for who in senders:
                ids = {items.TIMESTAMP: k * HEAP, items.FENG_ID: who, items.FREQUENCY: channel}
                payload = np.full((C, SPECTRA, 2, 2), who, np.int8)
                self.send(data_heap(ids, items.FENG_RAW, payload), who + len(ANTENNAS) * k + off)


def voltages(wire: Wire, antennas: list[VoltageInfo] = ANTENNAS, n_enders: int = 3, **given: int) -> ReceivedVoltages:
    listening, n = Listening([[wire.queue]], "inproc"), len(antennas)
    source = ReceivedVoltages(antennas, listening, n_enders=n_enders, n_substreams=n, confirm=1, **given)  # type: ignore[arg-type]
    source.lend([np.zeros((BATCHES, n, *antennas[0].heap_shape), np.int8) for _ in range(32)])
    return source


@pytest.fixture
def wire() -> Iterator[Wire]:
    yield Wire()


def seen(source: Received, wire: Wire) -> dict[str, Sender]:
    """The accounts of all senders by name, when all that was sent has come."""
    assert source.receiver is not None
    receiver = source.receiver
    wait_until(lambda: receiver.counts["heaps"] >= wire.n)
    return {each.name: each for each in source.senders()}


def texts(source: Received) -> dict[tuple[str, str], tuple[int, str]]:
    return {(each.counter, each.name): (each.n, each.text) for each in source.doubts()}


def test_a_heap_of_other_channels_is_refused_and_its_sender_is_named(wire: Wire) -> None:
    source = voltages(wire, first_channel=64)
    wire.voltages(0, 6, 0, 2, channel=64)
    wire.voltages(0, 6, 1, channel=128)
    found = seen(source, wire)
    assert {name: found[name].counts["wrong_channels"] for name in ("m000", "m001", "m002")} == {
        "m000": 0,
        "m001": 6,
        "m002": 0,
    }
    assert [found[name].counts["placed"] for name in ("m000", "m001", "m002")] == [6, 0, 6]
    assert texts(source) == {
        ("wrong_channels", "m001"): (
            6,
            "m001 says that its heaps begin with channel 128, and this engine takes those that begin with channel 64",
        )
    }
    source.close()


def test_sizes_times_and_senders_that_contradict_are_told_with_both_values(wire: Wire) -> None:
    source = voltages(wire)
    wire.voltages(0, 2, 0)
    for time_of, who, n_channels in ((2 * HEAP, 1, C // 2), (2 * HEAP + 5, 2, C), (2 * HEAP, 7, C)):
        ids = {items.TIMESTAMP: time_of, items.FENG_ID: who, items.FREQUENCY: 0}
        wire.send(data_heap(ids, items.FENG_RAW, np.zeros((n_channels, SPECTRA, 2, 2), np.int8)), 100 + who)
    seen(source, wire)
    assert texts(source) == {
        ("wrong_size", "m001"): (1, "m001 sends heaps of 1024 bytes, not 2048"),
        ("off_grid", "m002"): (1, "m002 says sample 2053, 5 after a multiple of the heap's 1024 samples"),
        ("foreign", ""): (1, "a sender says feng_id 7; 2 is the last"),
    }
    source.close()


@pytest.mark.parametrize(
    ("own", "kind", "shape", "text"),
    [
        ({}, {"dtype": np.dtype(np.int8)}, (C, SPECTRA, 2, 2), None),
        (
            {},
            {"dtype": np.dtype(np.int8)},
            (2 * C, SPECTRA // 2, 2, 2),
            "i8 [128, 4, 2, 2]; this engine takes i8 [64, 8, 2, 2]",
        ),
        ({"bits": 4, "nibbles": REAL_HIGH}, {"format": [("i", 4)]}, (C, SPECTRA, 2, 2), None),
        (
            {"bits": 4, "nibbles": REAL_LOW},
            {"format": [("i", 4)]},
            (C, SPECTRA, 2, 2),
            "i4 [64, 8, 2, 2]; this engine takes u8 [64, 8, 2]",
        ),
        ({"bits": 4, "nibbles": REAL_LOW}, {"dtype": np.dtype(np.uint8)}, (C, SPECTRA, 2), None),
    ],
)
def test_the_first_descriptors_of_a_sender_are_compared(
    wire: Wire, own: dict[str, object], kind: dict[str, object], shape: tuple[int, ...], text: str | None
) -> None:
    source = voltages(wire, [replace(each, **own) for each in ANTENNAS])  # type: ignore[arg-type]
    wire.send(described(IMMEDIATES, items.FENG_RAW, shape, **kind), 4)
    wire.send(described(IMMEDIATES, items.FENG_RAW, (1,), **kind), 7)  # the second ones of the same sender
    found = seen(source, wire)
    assert found["m001"].counts["wrong_descriptors"] == (text is not None)
    expected = {} if text is None else {("wrong_descriptors", "m001"): (1, f"m001 describes its heaps as {text}")}
    assert texts(source) == expected
    source.close()


def test_descriptors_of_samples_are_compared_and_saturated_samples_are_counted() -> None:
    wire, packet = Wire(), 256
    source = ReceivedSamples(SampleInfo(10, 2, 1e6, packet), Listening([[wire.queue]], "inproc"), confirm=1)
    source.lend([np.zeros((2, 8 * packet * 10 // 8), np.uint8) for _ in range(8)])
    ids = (items.TIMESTAMP, items.DIGITISER_ID, items.DIGITISER_STATUS)
    wire.send(described(ids, items.ADC_SAMPLES, (packet,), format=[("i", 8)]), 1)
    for k in range(10):
        status = {items.TIMESTAMP: k * packet, items.DIGITISER_ID: k % 2, items.DIGITISER_STATUS: k % 2 * (7 << 32 | 2)}
        wire.send(data_heap(status, items.ADC_SAMPLES, np.zeros(packet * 10 // 8, np.uint8)), 2 * k)
    found = seen(source, wire)
    assert [found[f"polarisation {pol}"].counts["saturated"] for pol in (0, 1)] == [0, 35]
    assert texts(source) == {
        ("wrong_descriptors", "polarisation 0"): (
            1,
            "polarisation 0 describes its heaps as i8 [256]; this engine takes i10 [256]",
        )
    }
    source.close()


def test_an_antenna_that_is_absent_is_missing_now(wire: Wire) -> None:
    """It has never come, or comes no more: what others have sent meanwhile counts."""
    source = voltages(wire)
    wire.voltages(0, 2 * BATCHES, 0, 1)
    wire.voltages(2 * BATCHES, 8 * BATCHES, 0)
    for _ in range(5):
        taken = source.take()
        assert taken is not None
        source.give_back(taken[0])
    found = seen(source, wire)
    missing = {name: found[name].counts["missing"] for name in ("m000", "m001", "m002")}
    assert missing == {"m000": 0, "m001": 3 * BATCHES, "m002": 5 * BATCHES}
    assert found["m002"].quiet_s is None and found["m000"].quiet_s is not None
    source.close()


def test_each_heap_is_in_one_counter_of_its_sender(wire: Wire) -> None:
    source = voltages(wire)
    wire.voltages(0, 3 * BATCHES, 0, 1, 2)
    wire.voltages(2 * BATCHES, 3 * BATCHES, 1)  # once more
    wire.voltages(3 * BATCHES, 6 * BATCHES, 0, 1)
    wire.voltages(3 * BATCHES, 3 * BATCHES + 2, 2)  # this chunk has been pushed out
    wire.voltages(1 << 20, (1 << 20) + 1, 2)
    for _ in range(4):
        taken = source.take()
        assert taken is not None
        source.give_back(taken[0])
    found = seen(source, wire)
    named = {name: {each: n for each, n in found[name].counts.items() if n} for name in ("m000", "m001", "m002")}
    assert named == {
        "m000": {"placed": 24},
        "m001": {"placed": 24, "repeated": 4},
        "m002": {"placed": 12, "too_old": 2, "jumped": 1, "missing": 4},
    }
    assert source.receiver is not None
    total = source.receiver.counts
    for name in ("placed", "repeated", "too_old", "jumped"):
        assert total[name] == sum(found[each].counts[name] for each in ("m000", "m001", "m002"))
    source.close()


def test_numbers_that_mix_heaps_of_several_packets_are_told(wire: Wire) -> None:
    wide = [replace(each, n_channels=8 * C) for each in ANTENNAS]  # heaps of 16 KiB, two packets on the wire
    source = voltages(wire, wide)
    for k in range(4):
        ids = {items.TIMESTAMP: k * HEAP, items.FENG_ID: 1, items.FREQUENCY: 0}
        wire.send(data_heap(ids, items.FENG_RAW, np.zeros((8 * C, SPECTRA, 2, 2), np.int8)), 1 + k)
    assert seen(source, wire)["m001"].counts["misnumbered"] == 2
    ((_, (n, text)),) = texts(source).items()
    assert n == 2 and text.startswith("the numbers of m001's heaps are not feng_id + k 3: heaps of several senders may")
    source.close()


@pytest.mark.parametrize("off", [0, 1])
def test_senders_that_stop_and_start_again_do_not_end_the_others(wire: Wire, off: int) -> None:
    """Whether or not the heaps' numbers tell whose the stop heap is."""
    source, at = voltages(wire), 0
    assert source.receiver is not None
    (placing,) = source.receiver._placings
    for who in (0, 1, 2, 0, 1, 2):
        wire.voltages(at, at + BATCHES, 0, 1, 2, off=off)
        wire.send(stop_heap(), who + len(ANTENNAS) * (at + BATCHES) + off)
        at += BATCHES
        wire.voltages(at, at + 2 * BATCHES, *({0, 1, 2} - {who}), off=off)
        at += 2 * BATCHES
    wire.voltages(at, at + 2 * BATCHES, 0, 1, 2, off=off)
    at += 2 * BATCHES
    seen(source, wire)
    assert (source.receiver.counts["stops"], placing.n_stops) == (6, 0)
    for who in (0, 1, 2) if off else (0, 0, 1, 2):  # numbers tell, too, that a stop heap came twice
        assert placing.n_stops < 3
        wire.send(stop_heap(), who + len(ANTENNAS) * at + off)
        seen(source, wire)
        time.sleep(0.05)
    n = 0
    while (taken := source.take()) is not None:
        source.give_back(taken[0])
        n += 1
    assert n == at // BATCHES and placing.n_stops == 3
    source.close()


def test_a_sender_by_tcp_that_is_silent_is_waited_for_as_long_as_patience_lasts() -> None:
    """Both wait for the engine, and one of them falls silent without closing its connection."""
    places = [Endpoint("127.0.0.1", port) for port in free_ports(2, socket.SOCK_STREAM)]
    listening = Listening([[each] for each in places], "tcp", is_lossless=True, patience_s=0.2)
    source = ReceivedVoltages(ANTENNAS[:2], listening, is_live=False, n_enders=2, confirm=1)
    source.lend([np.zeros((BATCHES, 2, *ANTENNAS[0].heap_shape), np.int8) for _ in range(8)])
    config = spead2.send.StreamConfig(max_packet_size=4096, max_heaps=64)
    streams = [spead2.send.TcpStream(spead2.ThreadPool(1), [(each.host, each.port)], config) for each in places]

    def send() -> None:
        for k in range(10 * BATCHES):
            for who, stream in enumerate(streams[: 1 if k >= 2 * BATCHES else 2]):
                ids = {items.TIMESTAMP: k * HEAP, items.FENG_ID: who, items.FREQUENCY: 0}
                stream.send_heap(data_heap(ids, items.FENG_RAW, np.zeros((C, SPECTRA, 2, 2), np.int8)), cnt=who + 2 * k)
        streams[0].send_heap(stop_heap(), cnt=20 * BATCHES)

    sender = threading.Thread(target=send)
    sender.start()
    came = []
    for _ in range(8):  # what is under construction needs the last stop heap
        number, batches = source.take() or (-1, None)
        assert batches is not None
        came.append(batches.present.all(axis=0).tolist())
        source.give_back(number)
    assert came == [[True, True]] * 2 + [[True, False]] * 6
    source.close()
    sender.join()
