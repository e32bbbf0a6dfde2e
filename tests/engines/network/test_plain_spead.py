"""Streams between the project and a plain program in a process of its own, over sockets and by files of packets."""

import socket
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("spead2")

from autotune import UsageError
from autotune.engines.network.dump_outlet import DumpOutlet
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import Received, ReceivedSamples, ReceivedVoltages
from autotune.engines.network.receiver import Listening
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.visibilities import VisibilityInfo
from autotune.engines.streams.voltages import REAL_HIGH, REAL_LOW, VoltageInfo

from ..stand_ins import weights_of
from .ports import free_ports

SCRIPT = Path(__file__).with_name("plain_spead.py")
PACKET, BITS, CHUNK = 1024, 10, 32  # samples of a packet, bits of a sample, packets of a chunk
WIDTH = PACKET * BITS // 8
SAMPLES = SampleInfo(BITS, 2, 1e6, PACKET)
VOLTAGES = VoltageInfo(128, 2, 8, 64, 256, SAMPLES)
N_ANTENNAS, N_BANDS, N_PACKETS, N_HEAPS, BATCHES = 2, 2, 150, 22, 4
FIRST = (1 << 48) - 2 * CHUNK * PACKET * 8  # chunks of samples and of voltages begin there, and 48 bits do not last


def script(*arguments: object) -> "subprocess.Popen[str]":
    """A process that knows nothing of the tree."""
    return subprocess.Popen(
        [sys.executable, "-I", SCRIPT, *map(str, arguments)], stdout=subprocess.PIPE, text=True, cwd="/"
    )


def ends(process: "subprocess.Popen[str]") -> None:
    process.communicate(timeout=120)
    assert process.returncode == 0


def ports(transport: str, n: int) -> list[int]:
    return free_ports(n, socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM)


def listening(transport: str, places: list[Any]) -> Listening:
    """A member for each place; one waits for the others, however late its thread is."""
    where = [[Endpoint("127.0.0.1", place)] if isinstance(place, int) else [place] for place in places]
    return Listening(where, transport, is_lossless=True)


def taken(source: Any, arrays: list[np.ndarray]) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Returns all chunks: time, what is said of it, and its bytes."""
    chunks = []
    while (one := source.take()) is not None:
        number, answer = one
        came = answer.received if isinstance(source, ReceivedSamples) else answer.present
        chunks.append((answer.time, came.copy(), arrays[number].copy()))
        source.give_back(number)
    return chunks


def counted(source: Received, **expected: int) -> None:
    """Check what became of heaps: all others than those are 0."""
    assert source.receiver is not None
    counts = source.receiver.counts
    del counts["packets"], counts["blocked"]
    assert {name: n for name, n in counts.items() if n} == {name: n for name, n in expected.items() if n}


SENT = [("udp", 2, 1), ("tcp", 2, 1), ("pcap", 2, 1), ("pcap", 1, 2), ("pcap", 1, 0)]  # transport, places, stop heaps


@pytest.mark.parametrize(("transport", "n_places", "stops"), SENT)
def test_samples_of_a_plain_sender_are_those_that_it_sent(
    transport: str, n_places: int, stops: int, tmp_path: Path
) -> None:
    packets = np.random.default_rng(1).integers(0, 256, (2, N_PACKETS, WIDTH), dtype=np.uint8)
    np.save(tmp_path / "packets.npy", packets)
    is_file = transport == "pcap"
    places = [tmp_path / f"{n}.pcap" for n in range(n_places)] if is_file else ports(transport, n_places)
    given = ("--data", tmp_path / "packets.npy", "--first", FIRST, "--samples", PACKET, "--stops", stops)
    arrays = [np.zeros((2, CHUNK * WIDTH), np.uint8) for _ in range(8)]
    source = ReceivedSamples(SAMPLES, listening(transport, places), is_live=False, near=FIRST, confirm=1)
    if is_file:
        ends(script("samples", transport, *places, *given))
        source.lend(arrays)
    else:
        source.lend(arrays)
        sender = script("samples", transport, *places, *given)
    chunks = taken(source, arrays)
    source.close()
    if not is_file:
        ends(sender)
    assert [time for time, _, _ in chunks] == [FIRST + n * CHUNK * PACKET for n in range(-(-N_PACKETS // CHUNK))]
    came = np.concatenate([came for _, came, _ in chunks], axis=1)
    found = np.concatenate([data.reshape(2, CHUNK, WIDTH) for _, _, data in chunks], axis=1)
    assert came[:, :N_PACKETS].all() and not came[:, N_PACKETS:].any()
    assert np.array_equal(found[:, :N_PACKETS], packets)
    n, n_stops = 2 * N_PACKETS, stops * n_places
    counted(source, placed=n, no_data=n_places, stops=n_stops, heaps=n + n_places + n_stops)


def written(path: Path, packets: np.ndarray, first: int, *more: Path) -> None:
    """Write files of packets: of all polarisations, or of one each."""
    np.save(path.with_suffix(".npy"), packets)
    ends(
        script(
            "samples", "pcap", path, *more, "--data", path.with_suffix(".npy"), "--first", first, "--samples", PACKET
        )
    )


@pytest.mark.parametrize(("n_chunks", "n_far"), [(2, 0), (1000, 4)])
def test_a_file_goes_on_after_a_stop_heap_and_a_gap(n_chunks: int, n_far: int, tmp_path: Path) -> None:
    packets = np.random.default_rng(4).integers(0, 256, (2, 2 * CHUNK, WIDTH), dtype=np.uint8)
    firsts, parts, path = (FIRST, FIRST + n_chunks * CHUNK * PACKET), [], tmp_path / "x.pcap"
    for first in firsts:
        written(path, packets, first)
        parts.append(path.read_bytes())
    path.write_bytes(parts[0] + parts[1][len(HEAD) :])
    info = replace(SAMPLES, sample_rate_hz=1e9)
    source = ReceivedSamples(info, listening("pcap", [path]), is_live=False, near=FIRST, confirm=5)
    arrays = [np.zeros((2, CHUNK * WIDTH), np.uint8) for _ in range(6)]
    source.lend(arrays)
    chunks = taken(source, arrays)
    source.close()
    assert [time for time, _, _ in chunks] == [firsts[0] + CHUNK * PACKET, firsts[1], firsts[1] + CHUNK * PACKET]
    assert sum(came.sum() for _, came, _ in chunks) == 6 * CHUNK - n_far and source.n_before == 2 * CHUNK - 4
    n = 8 * CHUNK
    counted(source, placed=n - 4 - n_far, jumped=4 + n_far, no_data=2, stops=2, heaps=n + 4)  # 4 at each beginning


def test_files_wait_for_each_other_and_for_memory_and_may_be_left_at_any_time(tmp_path: Path) -> None:
    paths, n_chunks = [tmp_path / "0.pcap", tmp_path / "1.pcap"], 40
    packets = np.random.default_rng(5).integers(0, 256, (2, n_chunks * CHUNK, WIDTH), dtype=np.uint8)
    written(paths[0], packets, FIRST, paths[1])
    content = paths[1].read_bytes()
    end = len(HEAD) + 16 + int.from_bytes(content[len(HEAD) + 8 : len(HEAD) + 12], "little")
    paths[1].write_bytes(content[:end] + content[len(HEAD) : end] * 20000 + content[end:])  # descriptors for long
    arrays = [np.zeros((2, CHUNK * WIDTH), np.uint8) for _ in range(4)]
    source = ReceivedSamples(SAMPLES, listening("pcap", paths), is_live=False, near=FIRST, confirm=1)
    source.lend(arrays)
    chunks = taken(source, arrays)
    source.close()
    assert np.array_equal(np.concatenate([data for _, _, data in chunks], axis=1), packets.reshape(2, -1))
    assert len(chunks) == n_chunks and all(came.all() for _, came, _ in chunks)
    source = ReceivedSamples(SAMPLES, listening("pcap", paths), is_live=False, near=FIRST, confirm=1)
    source.lend(arrays)
    assert source.take() is not None
    source.close()


def heaps_of(info: VoltageInfo, n_antennas: int) -> np.ndarray:
    kind = np.int8 if info.bits == 8 else np.uint8
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    shape = (n_antennas, N_HEAPS, *info.heap_shape)
    return np.random.default_rng(2).integers(low, high, shape, dtype=kind, endpoint=True)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(("transport", "stops"), [("udp", 1), ("tcp", 1), ("pcap", 1), ("pcap", 0)])
def test_voltages_of_a_plain_sender_are_those_that_it_sent(
    transport: str, stops: int, bits: int, tmp_path: Path
) -> None:
    """Both antennas' heaps come to one member stream, and each of two X-engines has a band."""
    info = replace(VOLTAGES, bits=bits)
    heaps, band = heaps_of(info, N_ANTENNAS), replace(info, n_channels=info.n_channels // N_BANDS)
    np.save(tmp_path / "heaps.npy", heaps)
    is_file = transport == "pcap"
    places = [tmp_path / f"{n}.pcap" for n in range(N_BANDS)] if is_file else ports(transport, N_BANDS)
    given = ("--data", tmp_path / "heaps.npy", "--first", FIRST, "--samples", info.heap_samples, "--stops", stops)
    shape = (BATCHES, N_ANTENNAS, *band.heap_shape)
    arrays = [[np.zeros(shape, np.int8) for _ in range(10)] for _ in range(N_BANDS)]
    sources = [
        ReceivedVoltages(
            [band] * N_ANTENNAS,
            listening(transport, [place]),
            first_channel=number * band.n_channels,
            is_live=False,
            n_enders=N_ANTENNAS,
            n_substreams=N_ANTENNAS,
            near=FIRST,
            confirm=1,
        )
        for number, place in enumerate(places)
    ]
    if is_file:
        ends(script("voltages", transport, *places, *given))
    for source, lent in zip(sources, arrays, strict=True):
        source.lend(lent)
    if not is_file:
        sender = script("voltages", transport, *places, *given)
    for number, (source, lent) in enumerate(zip(sources, arrays, strict=True)):
        chunks = taken(source, lent)
        assert [time for time, _, _ in chunks] == [FIRST + n * BATCHES * info.heap_samples for n in range(6)]
        came = np.concatenate([came for _, came, _ in chunks])
        found = np.concatenate([data for _, _, data in chunks])
        assert came[:N_HEAPS].all() and not came[N_HEAPS:].any()
        part = heaps[:, :, number * band.n_channels : (number + 1) * band.n_channels]
        assert np.array_equal(found[:N_HEAPS].swapaxes(0, 1), part.view(np.int8))
        n, n_stops = N_ANTENNAS * N_HEAPS, stops * N_ANTENNAS
        source.close()
        counted(source, placed=n, no_data=N_ANTENNAS, stops=n_stops, heaps=n + N_ANTENNAS + n_stops)
    if not is_file:
        ends(sender)


def spelled(heaps: np.ndarray) -> np.ndarray:
    """Returns bytes of two numbers of 4 bits as these numbers, the one in the high nibble first, as int8 [.., 2]."""
    pairs = np.stack([heaps.view(np.int8) >> 4, (heaps << 4).view(np.int8) >> 4], axis=-1)
    return np.asarray(pairs)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_plain_receiver_has_the_voltages_that_were_sent(transport: str, bits: int, tmp_path: Path) -> None:
    info = replace(VOLTAGES, bits=bits, nibbles=REAL_HIGH if bits == 4 else REAL_LOW)
    (heaps,) = heaps_of(info, 1)
    places, band = ports(transport, N_BANDS), VOLTAGES.n_channels // N_BANDS
    receivers = [script("receive", transport, place, "--out", tmp_path / f"{place}.npz") for place in places]
    for receiver in receivers:
        assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
    to = [Endpoint("127.0.0.1", place) for place in places]
    sink = VoltageOutlet(info, 1, 3, transport, to, is_paced=transport == "udp")
    times = FIRST + VOLTAGES.heap_samples * np.arange(N_HEAPS)
    present = np.ones((N_HEAPS, VOLTAGES.spectra_per_heap, 2), bool)
    sink.write(
        times,
        heaps.view(np.int8),
        np.zeros((N_HEAPS, 2), np.uint32),
        present,
    )
    sink.close()
    for number, (place, receiver) in enumerate(zip(places, receivers, strict=True)):
        ends(receiver)
        found = np.load(tmp_path / f"{place}.npz")
        assert found["timestamp"].tolist() == [time % (1 << 48) for time in times.tolist()]
        assert set(found["feng_id"].tolist()) == {1} and set(found["frequency"].tolist()) == {number * band}
        part = heaps[:, number * band : (number + 1) * band]
        assert np.array_equal(found["raw"], part if bits == 8 else spelled(part))
        assert all(counter % 3 == 1 for counter in found["counter"].tolist())
    assert (sink.n_heaps, sink.n_bytes, sink.n_failed) == (N_HEAPS * N_BANDS, heaps.nbytes, 0)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_a_plain_receiver_has_the_dumps_that_were_sent(transport: str, tmp_path: Path) -> None:
    info = VisibilityInfo(64, 8 * VOLTAGES.heap_samples, 8 * VOLTAGES.spectra_per_heap, (SAMPLES,) * 3)
    values = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, (5, 64, 6, 4, 2)).astype(np.int32)
    values[3, :, 1:3] = -(1 << 31), 1  # an antenna is missing
    (place,) = ports(transport, 1)
    receiver = script("receive", transport, place, "--out", tmp_path / "dumps.npz")
    assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
    sink = DumpOutlet(info, transport, [Endpoint("127.0.0.1", place)], first_channel=64, n_channels=256)
    times = [FIRST + n * info.dump_samples for n in range(5)]
    for time, dump in zip(times, values, strict=True):
        sink.write(time, dump, weights_of(np.ones(3, bool)), 0)
    sink.close()
    ends(receiver)
    found = np.load(tmp_path / "dumps.npz")
    assert found["timestamp"].tolist() == [time % (1 << 48) for time in times]
    assert set(found["frequency"].tolist()) == {64} and found["counter"].tolist() == [5, 9, 13, 17, 21]
    assert np.array_equal(found["raw"], values.reshape(5, 64, 24, 2))
    assert (sink.n_dumps, sink.n_failed) == (5, 0)


HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory"),
        (b"", "truncated dump file"),
        (b"samples of some antenna, not packets", "unknown file format"),
        (HEAD[:-4] + struct.pack("<I", 101), "linktype is neither ethernet nor"),
    ],
)
def test_what_is_not_a_file_of_packets_is_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    if content is not None:
        path.write_bytes(content)
    source = ReceivedSamples(SAMPLES, listening("pcap", [path]))
    with pytest.raises(UsageError, match=rf"^nothing can be received at {path}: .*{message}[^\n]*$"):
        source.lend([np.zeros((2, CHUNK * WIDTH), np.uint8)] * 4)


@pytest.mark.parametrize("end", [b"", b"half of a head", struct.pack("<IIII", 0, 0, 100, 100) + bytes(50)])
def test_a_file_of_packets_may_be_empty_or_cut_short(end: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(HEAD + end)
    source = ReceivedSamples(SAMPLES, listening("pcap", [tmp_path / "x.pcap"]))
    source.lend([np.zeros((2, CHUNK * WIDTH), np.uint8) for _ in range(4)])
    assert source.take() is None
    source.close()
    counted(source)
