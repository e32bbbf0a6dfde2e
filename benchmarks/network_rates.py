"""How fast streams are received and sent, beside bare spead2 with the same settings, and engines behind the network.

    python benchmarks/network_rates.py --device cuda --json rates.json

- receive: two members get heaps of one packet, 5120 bytes each, or of 64 KiB; `bare` is spead2's group of chunk streams
  with a function in C that only computes a place; `ours` is ReceivedSamples with all its rules.
- send: heaps of some MiB to one receiver; `bare` is spead2's stream with heaps built once; `ours` VoltageOutlet.
- engines: F and X that receive, compute and copy out, in bytes that come in.

By tcp each sender is a process, inproc a thread. Rates are of the seconds after the first. CPU seconds a GB are those
of the whole process that is measured: inproc senders count, too.
"""

import argparse
import ctypes
import json
import multiprocessing
import socket
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import spead2
import spead2.recv
import spead2.send

from autotune.devices.host.own_files import own_library
from autotune.engines.corrections.delays import DelayModel
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output, voltage_info
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filters import prototype
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.jobs.running import Running
from autotune.engines.jobs.sinks import NullSink
from autotune.engines.network import items, placing
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import ReceivedSamples, ReceivedVoltages
from autotune.engines.network.receiver import Listening
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import VoltageInfo
from autotune.engines.x.engine import XEngine

BARE_PLACE = """
#include <stddef.h>
#include <stdint.h>
struct place_data {
    const uint8_t *packet; size_t packet_size; const int64_t *items; int64_t chunk_id; size_t index, offset;
};
struct rules { int64_t bytes, step, n, sender; };
void place_bare(void *d, size_t size, void *r)
{
    struct place_data *data = d; const struct rules *rules = r;
    int64_t time = data->items[0], heap;
    (void)size;
    if (time < 0 || data->items[1] != rules->bytes) return;
    heap = time / rules->step;
    data->chunk_id = heap / rules->n;
    data->index = (size_t)(rules->sender * rules->n + heap % rules->n);
    data->offset = data->index * (size_t)rules->bytes;
}
"""
N_CHUNKS, WARM_S = 7, 1.0
GROUP_BYTES = 4 << 20  # of heaps that a sender gives away at once
PACKET_BYTES = 8192


@dataclass(frozen=True)
class Heaps:
    """The heaps of a stream: who sent them, and how long they are."""

    sender_item: int
    raw_item: int
    n_bytes: int
    step: int  # samples
    packet_bytes: int = PACKET_BYTES


SAMPLES = Heaps(items.DIGITISER_ID, items.ADC_SAMPLES, 5120, 4096, 5120)
LONG_SAMPLES = Heaps(items.DIGITISER_ID, items.ADC_SAMPLES, 1 << 16, 1 << 16)
SEND_CONFIG: dict[str, Any] = {"max_heaps": 4096, "rate": 0.0}


def send_forever(heaps: Heaps, sender: int, where: int | spead2.InprocQueue, is_over: Any) -> None:
    """Send heaps, built once and with times in place, until ``is_over`` is set or the receiver has gone."""
    config = spead2.send.StreamConfig(max_packet_size=heaps.packet_bytes + 72, **SEND_CONFIG)
    pool = spead2.ThreadPool(1)
    if isinstance(where, int):
        stream: Any = spead2.send.TcpStream(pool, [("127.0.0.1", where)], config, 4 << 20)
    else:
        stream = spead2.send.InprocStream(pool, [where], config)
    n = max(8, GROUP_BYTES // heaps.n_bytes)
    parts = []
    for _ in range(2):
        times, payload = np.zeros(n, ">u8"), np.zeros((n, heaps.n_bytes), np.uint8)
        made = []
        for place in range(n):
            heap = spead2.send.Heap(spead2.Flavour(*items.FLAVOUR))
            for number, value in ((items.TIMESTAMP, times[place, ...]), (heaps.sender_item, sender)):
                heap.add_item(spead2.Item(number, "", "", (), format=[("u", 48)], value=value))
            heap.add_item(spead2.Item(heaps.raw_item, "", "", payload[place].shape, np.uint8, value=payload[place]))
            heap.repeat_pointers = True
            made.append(spead2.send.HeapReference(heap))
        parts.append((times, made, payload))
    first = 0
    while not is_over.is_set():
        times, made, _ = parts[(first // n) % 2]
        times[...] = heaps.step * (first + np.arange(n))
        try:
            stream.send_heaps(made, spead2.send.GroupMode.SERIAL)
        except (RuntimeError, OSError):
            return
        first += n


class Senders:
    """Sends to some places while the block runs."""

    def __init__(self, heaps: Heaps, to: Sequence[Any]) -> None:
        self._is_tcp = isinstance(to[0], int)
        spawn = multiprocessing.get_context("spawn")
        self._over: Any = spawn.Event() if self._is_tcp else threading.Event()
        make: Any = spawn.Process if self._is_tcp else threading.Thread
        arguments = [(heaps, number, place, self._over) for number, place in enumerate(to)]
        self._all = [make(target=send_forever, args=each, daemon=True) for each in arguments]

    def start(self) -> None:
        for each in self._all:
            each.start()

    def stop(self) -> None:
        self._over.set()
        if self._is_tcp:
            for each in self._all:
                each.kill()


def places(transport: str, n: int) -> list[Any]:
    if transport == "inproc":
        return [spead2.InprocQueue() for _ in range(n)]
    some = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [each.getsockname()[1] for each in some]
    for each in some:
        each.close()
    return ports


def listening(transport: str, to: Sequence[Any]) -> Listening:
    members: Any = [[Endpoint("127.0.0.1", each)] if isinstance(each, int) else [each] for each in to]
    return Listening(members, transport, is_lossless=True)


def measured(take: Callable[[], int | None], seconds: float) -> dict[str, float]:
    """Returns GB/s and CPU seconds a GB of what ``take`` takes, which returns bytes."""
    while take() == 0:
        pass
    end = time.monotonic() + WARM_S
    while time.monotonic() < end:
        take()
    began, cpu, n = time.monotonic(), time.process_time(), 0
    while (now := time.monotonic()) < began + seconds:
        n += take() or 0
    return {"GB_s": n / (now - began) / 1e9, "cpu_s_GB": (time.process_time() - cpu) / n * 1e9}


def bare_receive(heaps: Heaps, transport: str, chunk_heaps: int, seconds: float) -> dict[str, float]:
    library = ctypes.CDLL(str(own_library("bare", placing.OPTIONS, BARE_PLACE, BARE_PLACE)))
    config = spead2.recv.ChunkStreamGroupConfig(
        max_chunks=3, eviction_mode=spead2.recv.ChunkStreamGroupConfig.EvictionMode.LOSSLESS
    )
    data, free = spead2.recv.ChunkRingbuffer(N_CHUNKS), spead2.recv.ChunkRingbuffer(N_CHUNKS)
    group = spead2.recv.ChunkStreamRingGroup(config, data, free)
    to, kept = places(transport, 2), []
    for sender in range(2):
        rules = np.array([heaps.n_bytes, heaps.step, chunk_heaps, sender], np.int64)
        name = ctypes.create_string_buffer(placing.SIGNATURE)
        address = ctypes.cast(library.place_bare, ctypes.c_void_p)
        capsule = placing._new_capsule(address, name, None)
        placing._set_context(capsule, rules.ctypes.data)
        kept.append((rules, name))
        stream_config = spead2.recv.StreamConfig(
            max_heaps=1, allow_out_of_order=True, memcpy=spead2.MEMCPY_NONTEMPORAL, explicit_start=True
        )
        chunks = spead2.recv.ChunkStreamConfig(
            items=[items.TIMESTAMP, items.HEAP_LENGTH], max_chunks=2, place=(capsule, rules, name)
        )
        group.emplace_back(spead2.ThreadPool(1), stream_config, chunks)
    for _ in range(N_CHUNKS):
        memory = np.zeros(2 * chunk_heaps * heaps.n_bytes, np.uint8)
        group.add_free_chunk(spead2.recv.Chunk(data=memory, present=np.zeros(2 * chunk_heaps, np.uint8)))
    for stream, place in zip(group, to, strict=True):
        if isinstance(place, int):
            stream.add_tcp_reader(place, max_size=65536, buffer_size=4 << 20, bind_hostname="127.0.0.1")
        else:
            stream.add_inproc_reader(place)
        stream.start()
    senders = Senders(heaps, to)
    senders.start()

    def take() -> int:
        chunk = data.get()
        n = int(np.count_nonzero(np.asarray(chunk.present))) * heaps.n_bytes
        group.add_free_chunk(chunk)
        return n

    found = measured(take, seconds)
    senders.stop()
    group.stop()
    return found


def our_receive(heaps: Heaps, transport: str, chunk_heaps: int, seconds: float) -> dict[str, float]:
    info = SampleInfo(8 * heaps.n_bytes // heaps.step, 2, 1e9, heaps.step)
    to = places(transport, 2)
    source = ReceivedSamples(info, listening(transport, to), is_live=False, confirm=1)
    source.lend([np.zeros((2, chunk_heaps * heaps.n_bytes), np.uint8) for _ in range(N_CHUNKS)])
    senders = Senders(heaps, to)
    senders.start()

    def take() -> int:
        taken = source.take()
        assert taken is not None
        source.give_back(taken[0])
        return int(np.count_nonzero(taken[1].received)) * heaps.n_bytes

    found = measured(take, seconds)
    senders.stop()
    source.close()
    return found


def drained(port: int, is_over: Any) -> None:
    """Read what comes by TCP, and drop it."""
    with socket.create_server(("127.0.0.1", port)) as server:
        connection, _ = server.accept()
        memory = bytearray(4 << 20)
        while not is_over.is_set() and connection.recv_into(memory):
            pass


def sent(n_bytes: int, is_ours: bool, seconds: float) -> dict[str, float]:
    """Returns the rate of heaps to one receiver by TCP."""
    (port,) = places("tcp", 1)
    spawn = multiprocessing.get_context("spawn")
    over = spawn.Event()
    drain = spawn.Process(target=drained, args=(port, over), daemon=True)
    drain.start()
    time.sleep(1.5)
    n = 8
    channels = n_bytes // (256 * 4)
    info = VoltageInfo(channels, 2, 8, 256, 2 * channels, SampleInfo(10, 2, 1e9, 4096))
    voltages = np.zeros((n, *info.heap_shape), np.int8)
    if is_ours:
        sink = VoltageOutlet(info, 0, 1, "tcp", [Endpoint("127.0.0.1", port)], is_paced=False)
        times = info.heap_samples * np.arange(n)

        def take() -> int:
            sink.write(times, voltages, np.zeros((n, 2), np.uint32), np.ones((n, 256, 2), bool))
            return voltages.nbytes
    else:
        config = spead2.send.StreamConfig(max_packet_size=PACKET_BYTES + 72, **SEND_CONFIG)
        stream = spead2.send.TcpStream(spead2.ThreadPool(1), [("127.0.0.1", port)], config, 4 << 20)
        made = []
        for part in voltages:
            heap = spead2.send.Heap(spead2.Flavour(*items.FLAVOUR))
            for number in (items.TIMESTAMP, items.FENG_ID, items.FREQUENCY):
                heap.add_item(spead2.Item(number, "", "", (), format=[("u", 48)], value=0))
            heap.add_item(spead2.Item(items.FENG_RAW, "", "", part.shape, part.dtype, value=part))
            heap.repeat_pointers = True
            made.append(spead2.send.HeapReference(heap))

        def take() -> int:
            stream.send_heaps(made, spead2.send.GroupMode.SERIAL)
            return voltages.nbytes

    found = measured(take, seconds)
    over.set()
    drain.kill()
    return found


def engine_rate(engine: Any, counted: Callable[[], float], senders: Senders, seconds: float) -> dict[str, float]:
    """Returns the rate of an engine that receives, and the share of a core that its main thread takes."""
    shares: list[float] = []

    def run() -> None:
        engine.run()
        shares.append(time.thread_time())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    senders.start()
    while not counted():
        time.sleep(0.05)
    time.sleep(WARM_S)
    began, cpu, n = time.monotonic(), time.process_time(), counted()
    time.sleep(seconds)
    took, gigabytes = time.monotonic() - began, (counted() - n) / 1e9
    cpu_s = time.process_time() - cpu
    began_all = engine.counters.began if hasattr(engine.counters, "began") else engine.counters[0].began
    engine.stop()
    thread.join(30)
    senders.stop()
    whole = time.monotonic() - began_all
    return {
        "GB_s": gigabytes / took,
        "cpu_s_GB": cpu_s / gigabytes,
        "main_thread_core": shares[0] / whole if shares else float("nan"),
    }


def f_rate(device: str, transport: str, log_chunk: int, seconds: float) -> dict[str, float]:
    running = Running(device=device, results="results" if Path("results").is_dir() else None)
    info = SampleInfo(10, 2, 1e9, SAMPLES.step)
    to = places(transport, 2)
    source: Any = ReceivedSamples(info, listening(transport, to), is_live=False, confirm=1)
    band = BandSettings(4096, prototype(4096, 16), 8, 256, max(1, (1 << log_chunk) // (8192 * 256)), 1 << 20)
    output = Output(band, NullSink(), [DelayModel(), DelayModel()], Gains(4096, 2, 0.01))
    engine = FEngine(running.backend, source, [output], (1 << log_chunk) // SAMPLES.step, running.kernels())
    per_sample = 2 * info.sample_bits / 8
    found = engine_rate(engine, lambda: per_sample * engine.counters[0].samples_in, Senders(SAMPLES, to), seconds)
    source.close()
    return found


def x_rate(device: str, transport: str, seconds: float) -> dict[str, float]:
    running = Running(device=device, results="results" if Path("results").is_dir() else None)
    n_antennas = 4
    samples = SampleInfo(10, 2, 1e9, SAMPLES.step)
    band = BandSettings(2048, prototype(2048, 16), 8, 256)
    info = voltage_info(samples, band)
    antennas = [replace(info, samples=replace(samples, antenna=f"m{number}")) for number in range(n_antennas)]
    to = places(transport, n_antennas)
    source: Any = ReceivedVoltages(antennas, listening(transport, to), is_live=False, confirm=1)
    engine = XEngine(running.backend, source, NullSink(), running.kernels(), accumulate=64)
    heaps = Heaps(items.FENG_ID, items.FENG_RAW, int(np.prod(info.heap_shape)), info.heap_samples)
    n_bytes = n_antennas * heaps.n_bytes
    found = engine_rate(engine, lambda: float(n_bytes * engine.counters.batches_in), Senders(heaps, to), seconds)
    source.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--log-chunk", type=int, default=26, help="samples of an F-engine's chunk, as a power of two")
    parser.add_argument("--only", nargs="*", default=["receive", "send", "engines"])
    parser.add_argument("--json", type=Path, help="a file for all of it")
    args = parser.parse_args()
    todo: dict[str, Callable[[], dict[str, float]]] = {}
    for transport in ("tcp", "inproc"):
        for name, heaps, n in (("5 KiB", SAMPLES, 4096), ("64 KiB", LONG_SAMPLES, 320)):
            if "receive" in args.only:
                todo[f"receive {transport} {name} bare"] = partial(bare_receive, heaps, transport, n, args.seconds)
                todo[f"receive {transport} {name} ours"] = partial(our_receive, heaps, transport, n, args.seconds)
    if "send" in args.only:
        for n_bytes in (2 << 20, 128 << 10):
            for name, ours in (("bare", False), ("ours", True)):
                todo[f"send tcp {n_bytes >> 10} KiB {name}"] = partial(sent, n_bytes, ours, args.seconds)
    if "engines" in args.only:
        for transport in ("tcp", "inproc"):
            todo[f"F-engine {transport}"] = partial(f_rate, args.device, transport, args.log_chunk, args.seconds)
            todo[f"X-engine {transport}, 4 antennas"] = partial(x_rate, args.device, transport, args.seconds)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in todo}
    for _ in range(args.repeats):
        for name, run in todo.items():
            found[name].append(run())
            print(name, {k: round(v, 3) for k, v in found[name][-1].items()}, flush=True)
    print(f"\n{'what':32} {'GB/s: median, least, most':28} {'CPU s a GB: least':18} main thread's core")
    for name, all_of in found.items():
        rates = [each["GB_s"] for each in all_of]
        cpu = min(each["cpu_s_GB"] for each in all_of)
        main_thread = statistics.median(each.get("main_thread_core", float("nan")) for each in all_of)
        three = f"{statistics.median(rates):.2f}, {min(rates):.2f}, {max(rates):.2f}"
        print(f"{name:32} {three:28} {cpu:<18.3f} {main_thread:.2f}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
