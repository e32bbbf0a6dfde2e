"""Programs of MeerKAT's correlator as the other ends of engines: every value is compared, and every heap counted.

    python benchmarks/network_peers.py KATGPUCBF --python PEER/bin/python

takes a checkout of github.com/ska-sa/katgpucbf, and a Python that has it installed, as
docs/lab/2026-11-26-network-peers.md says. Its simulators send and its receivers take by multicast on loopback; engines
run on the CPU. Values are compared with plain NumPy, and counters with what a socket of neither side has heard.
"""

import argparse
import asyncio
import json
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module as peer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

HERE, PORT, RATE_HZ = "127.0.0.1", 7148, 5e5
BITS, PACKET, PERIOD = 10, 4096, 1 << 19
C, SPECTRA, TAPS, GAIN, PER_DUMP = 128, 64, 4, 0.02, 8
HALF, STEP, HEAP = C // 2, 2 * C, 2 * C * SPECTRA  # channels; samples from spectrum to spectrum, and of a heap
NEAR = 2e-3  # of a half: float32 may round otherwise there
N_FSIM, N_CHUNKS = 8, 8  # heaps after which its F-engines repeat; chunks of its receivers
ITEMS = {0x1600: "time", 0x3101: "sender", 0x4101: "sender", 0x4103: "channel"}
NOT_PLACED = ("wrong_size", "wrong_channels", "off_grid", "jumped", "early", "repeated", "too_old", "incomplete")
THEIRS = ("cw(0.2, 123456.0) + wgn(0.1, 1);", "wgn(0.12, 2);", "wgn(0.1, 3);", "cw(0.1, 4e5) + wgn(0.1, 4);")
OURS = ("tone(123456, 0.2) + noise(0.1, seed=1)", "noise(0.12, seed=2)", "noise(0.1, seed=3)", "noise(0.1, seed=4)")
NONE, STOPPED, KILLED, DOUBLED = "no trouble", "one stopped for 1 s", "one killed and started again", "one doubled"
Arrays = dict[str, np.ndarray]
Heap = tuple[int, int, int]  # sender, time in samples, first channel
Given = dict[str, Any]


# --------------------------------------------------------- what runs in the peer's Python: its functions are asked here
def samples_of(given: Given) -> Arrays:
    """Returns the packets of a period of its digitiser simulator: uint8 [1, packets, bytes]."""
    made, xarray = peer("katgpucbf.dsim.signal"), peer("xarray")
    out = xarray.DataArray(np.zeros((1, PERIOD // PACKET, PACKET * BITS // 8), np.uint8), dims=["pol", "time", "data"])
    made.sample(made.parse_signals(given["signals"]), 0, PERIOD, RATE_HZ, BITS, out, dither_seed=given["seed"])
    return {"packets": out.data}


def voltages_of(given: Given) -> Arrays:
    """Returns the heaps of its F-engine simulator, whose two places get the same: int8 [heaps, antennas, C, ..]."""
    heaps = np.zeros((N_FSIM, given["n"], HALF, SPECTRA, 2, 2), np.int8)
    for number, antenna in np.ndindex(heaps.shape[:2]):
        peer("katgpucbf.fsim.main").make_heap_payload(heaps[number, antenna], number, antenna, given["n"])
    return {"heaps": np.concatenate([heaps, heaps], axis=2)}


async def received_samples(given: Given) -> Arrays:
    """Takes heaps of samples as its F-engine does."""
    recv = peer("katgpucbf.fgpu.recv")
    layout = recv.Layout(sample_bits=BITS, heap_samples=PACKET, chunk_samples=64 * PACKET, mask_timestamp=False)
    group = recv.make_stream_group(layout, *rings(), [-1, -1], layout.pol_chunk_bytes)
    shapes = {"data": (2, layout.pol_chunk_bytes), "present": (2, 64), "extra": (2, 64)}
    return await received(recv, group, list(group), layout, given, shapes, np.uint8, ("input0.", "input1."))


async def received_voltages(given: Given) -> Arrays:
    """Takes heaps of voltages as its X-engine does."""
    recv, n = peer("katgpucbf.xbgpu.recv"), given["n"]
    layout = recv.Layout(n, HALF, SPECTRA, HEAP, 8, 8)
    stream = recv.make_stream(layout, *rings(), -1, 4)
    shapes = {"data": (8, n, HALF, SPECTRA, 2, 2), "present": (8 * n,)}
    return await received(recv, stream, [stream], layout, given, shapes, np.int8, ("",))


def rings() -> tuple[Any, Any]:
    kind = peer("spead2.recv.asyncio").ChunkRingbuffer
    return kind(N_CHUNKS), kind(N_CHUNKS)


async def received(
    recv: Any, group: Any, streams: list[Any], layout: Any, given: Given, shapes: Given, dtype: Any, names: Any
) -> Arrays:
    base, clock, found = peer("katgpucbf.recv"), peer("katgpucbf.utils").TimeConverter(given["sync"], RATE_HZ), []
    kinds = {"data": dtype, "present": np.uint8, "extra": np.uint16}
    for _ in range(N_CHUNKS):
        recv.Chunk(**{name: np.zeros(each, kinds[name]) for name, each in shapes.items()}, sink=group).recycle()
    for place, stream in zip(given["groups"], streams, strict=True):
        where: Given = {"src": [(place, PORT)], "interface": HERE, "buffer_size": 1 << 24}
        base.add_reader(stream, **where, ibv=False, comp_vector=0)
    for stream in streams[:2] if len(streams) > 1 else ():  # a group's streams wait for this
        stream.start()
    stopped_with_input(group.stop)
    async for chunk in recv.iter_chunks(group.data_ringbuffer, layout, base.make_sensors(10.0, names), clock):
        with chunk:
            found.append((chunk.timestamp, chunk.present.copy(), chunk.data.copy()))
    metrics = [each for metric in peer("prometheus_client").REGISTRY.collect() for each in metric.samples]
    counts = {each.name + "".join(each.labels.values()): np.array(int(each.value)) for each in metrics}
    counts = {name: each for name, each in counts.items() if "gpu_input" in name and "heaps_total" in name}
    times, present, data = map(np.array, zip(*found, strict=True))
    return {"times": times, "present": present, "data": data} | counts


async def received_dumps(given: Given) -> Arrays:
    """Takes dumps as its qualification tests do."""
    n, times, data, n_other = given["n"], list[int](), list[np.ndarray](), 0
    inputs = [f"{antenna}{pol}" for antenna in range(n) for pol in "hv"]
    acv = {"src_streams": inputs, "n_chans": C, "input_labels": inputs}
    outputs = {"x": {"src_streams": ["f"]}, "f": acv} | {each: {"adc_sample_rate": RATE_HZ} for each in inputs}
    of_x = {"n-chans-per-substream": HALF, "destination": f"{given['groups'][0]}+1:{PORT}".encode(), "n-xengs": 2}
    of_x |= {"n-bls": 2 * n * (n + 1), "xeng-out-bits-per-sample": 32, "n-accs": SPECTRA * PER_DUMP}
    of_x |= {"int-time": HEAP * PER_DUMP / RATE_HZ, "bls-ordering": b"[]"}
    of_f = {"spectra-per-heap": SPECTRA, "n-samples-between-spectra": STEP, "sync-time": given["sync"]}
    of_f |= {"scale-factor-timestamp": RATE_HZ, "bandwidth": RATE_HZ / 2, "center-freq": RATE_HZ / 4}
    sensors = {f"{stream}.{name}": each for stream, some in (("x", of_x), ("f", of_f)) for name, each in some.items()}
    known = {name: SimpleNamespace(value=value) for name, value in sensors.items()}
    cbf = SimpleNamespace(config={"outputs": outputs}, init_sensors=known)
    receiver = peer("qualification.recv").BaselineCorrelationProductsReceiver(cbf, "x", [0], HERE)
    stopped_with_input(receiver.stream_group.stop)
    async for timestamp, chunk in receiver.complete_chunks(min_timestamp=0, all_timestamps=True):
        if chunk is None:
            n_other += 1
            continue
        with chunk:
            times.append(timestamp)
            data.append(chunk.data.copy())
    return {"times": np.array(times), "data": np.array(data), "others": np.array(n_other)}


def stopped_with_input(stop: Callable[[], None]) -> None:
    """Says that a receiver is there, and calls ``stop`` when standard input ends."""

    def wait() -> None:
        sys.stdin.read()
        stop()

    threading.Thread(target=wait, daemon=True).start()
    print("ready", flush=True)


def run_in_peer(kind: str, given: Given) -> None:
    sys.path.insert(0, given["checkout"])
    made = globals()[kind](given)
    np.savez(given["out"], **(asyncio.run(made) if asyncio.iscoroutine(made) else made))


# ---------------------------------------------------------------------------------------- processes, and what is heard
class Air:
    """The processes of one run, and its groups of multicast, 239.77.``number``.x."""

    def __init__(self, args: argparse.Namespace, folder: Path, number: int) -> None:
        self.args, self.folder, self.number, self.n_groups = args, folder, number, 0
        self.sync, self.started = int(time.time()) - 100, dict[str, subprocess.Popen[str]]()

    def two_groups(self) -> list[str]:
        self.n_groups += 2
        return [f"239.77.{self.number}.{self.n_groups + each}" for each in range(2)]

    def start(self, name: str, *call: object) -> "subprocess.Popen[str]":
        with open(self.folder / f"{name}.log", "w") as log:
            words, pipe = list(map(str, call)), subprocess.PIPE
            self.started[name] = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log, text=True)
        return self.started[name]

    def fail(self, name: str) -> SystemExit:
        return SystemExit(f"{name}: {(self.folder / f'{name}.log').read_text()[-3000:]}")

    def of_peer(self, name: str, kind: str, **given: Any) -> "subprocess.Popen[str]":
        """Start one of the functions above. What it returns is in a file of this name, for ``result``."""
        given |= {"checkout": str(self.args.checkout), "out": str(self.folder / f"{name}.npz"), "sync": self.sync}
        return self.start(name, *self.args.python, Path(__file__).resolve(), "--as", kind, json.dumps(given))

    def receiver(self, name: str, kind: str, **given: Any) -> None:
        out = self.of_peer(name, kind, **given).stdout
        if out is None or out.readline() != "ready\n":
            raise self.fail(name)

    def result(self, name: str) -> Arrays:
        self.started[name].communicate(timeout=60)
        if self.started[name].returncode:
            raise self.fail(name)
        return dict(np.load(self.folder / f"{name}.npz"))

    def simulator(self, name: str, module: str, more: str) -> None:
        shared = f"--adc-sample-rate {RATE_HZ} --sync-time {self.sync} --interface lo"
        self.start(name, *self.args.python, "-m", f"katgpucbf.{module}.main", *shared.split(), *shlex.split(more))

    def dsim(self, name: str, pol: int, group: str, signals: str, seed: int) -> None:
        kind = f"--katcp-host {HERE} --katcp-port 0 --heap-samples {PACKET} --sample-bits {BITS} --period {PERIOD}"
        own = f"--dither-seed {seed} --first-id {pol} --signals '{signals}' {group}:{PORT}"
        self.simulator(name, "dsim", f"{kind} {own}")

    def fsim(self, name: str, n: int, group: str) -> None:
        kind = f"--array-size {n} --channels {C} --channels-per-substream {HALF} --jones-per-batch {C * SPECTRA}"
        self.simulator(name, "fsim", f"{kind} {group}+1:{PORT}")

    def engine(self, name: str, command: str, lines: str, device: str = "--device=host") -> None:
        path, log = self.folder / f"{name}.toml", self.folder / f"{name}.log"
        path.write_text(f"sample_rate_hz = {RATE_HZ}\n{lines}")
        self.start(name, sys.executable, "-m", "autotune", command, path, "--json", device)
        while "heaps are received at" not in log.read_text() and command != "dsim":
            if self.started[name].poll() is not None:
                raise self.fail(name)
            time.sleep(0.1)

    def f_engine(self, name: str, antenna: int, samples: Sequence[str], to: Sequence[str]) -> None:
        own = f'antenna = "m{antenna}"\nfeng_id = {antenna}\nn_antennas = 2\nsync_time_unix = {self.sync}\n'
        own += f"packet = {PACKET}\nsample_bits = {BITS}\nchunk = {1 << 16}\n[from]\n{places('listen', samples)}"
        band = f"[[to]]\nchannels = {C}\ntaps = {TAPS}\nspectra_per_heap = {SPECTRA}\ngains = {GAIN}\n"
        self.engine(name, "fengine", own + band + places("endpoints", to))

    def x_engines(self, n: int, voltages: Sequence[str], to: Sequence[str]) -> None:
        own = f"antennas = {[f'm{antenna}' for antenna in range(n)]}\nchannels = {C}\nn_channels = {HALF}\n"
        own += f"spectra_per_heap = {SPECTRA}\naccumulate = {PER_DUMP}\n"
        for half in range(2):
            ends = "[from]\n" + places("listen", [voltages[half]]) + "[to]\n" + places("endpoints", [to[half]])
            self.engine(f"x{half}", "xengine", f"{own}first_channel = {half * HALF}\n{ends}")

    def end(self, *names: str) -> list[dict[str, Any]]:
        """Ask processes to end, and return what those of engines have counted."""
        for name in names:
            self.started[name].send_signal(signal.SIGTERM)
        told = list(map(self.told, names))
        time.sleep(1)
        return [json.loads(each) if each.startswith("{") else {} for each in told]

    def told(self, name: str) -> str:
        try:
            return str(self.started[name].communicate(timeout=20)[0])
        except subprocess.TimeoutExpired:  # a dsim of the peer that does not end has sent what it would send
            self.started[name].kill()
            return str(self.started[name].communicate()[0])

    def kill(self) -> None:
        for process in self.started.values():
            process.kill()
            process.wait()


def places(key: str, groups: Sequence[str]) -> str:
    return f'{key} = {json.dumps([f"{group}:{PORT}" for group in groups])}\ninterface = "{HERE}"\n'


class Heard:
    """How often each heap came to two groups, as a socket heard that belongs to neither side."""

    def __init__(self, groups: Sequence[str]) -> None:
        self.heaps, self._over = Counter[Heap](), threading.Event()
        self._threads = [threading.Thread(target=self._hear, args=(group,), daemon=True) for group in groups]
        for thread in self._threads:
            thread.start()

    def _hear(self, group: str) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            own.bind((group, PORT))
            of_group = socket.inet_aton(group) + socket.inet_aton(HERE)
            own.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, of_group)
            own.settimeout(0.2)
            while not self._over.is_set():
                try:
                    packet = own.recv(160)
                except TimeoutError:
                    continue
                words = struct.unpack_from(f">{packet[7]}Q", packet, 8)
                items = {(word >> 48) & 0x7FFF: word & ((1 << 48) - 1) for word in words}
                if items.get(3) == 0 and 0x1600 in items:  # the first packet of a heap with a time
                    of_heap = {ITEMS[item]: value for item, value in items.items() if item in ITEMS}
                    self.heaps[of_heap.get("sender", 0), of_heap["time"], of_heap.get("channel", 0)] += 1

    def n_more(self) -> int:
        """Returns how many heaps came again."""
        return sum(self.heaps.copy().values()) - len(self.heaps)

    def of(self, sender: int, channel: int = 0) -> dict[Heap, int]:
        return {heap: n for heap, n in self.heaps.items() if heap[::2] == (sender, channel)}

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not holds():
        if time.monotonic() > end:
            raise SystemExit("nothing has come for 90 s")
        time.sleep(0.1)


# ------------------------------------------------------------------------------------------------- what is compared
def spectra(packets: np.ndarray) -> np.ndarray:
    """The voltages of all heaps of a period before they are rounded: float64 [heaps, C, SPECTRA, 2]."""
    bits = np.unpackbits(packets.reshape(-1)).reshape(-1, BITS)
    samples = bits @ (1 << np.arange(BITS)[::-1]) - (bits[:, 0].astype(int) << BITS)
    at = np.arange(TAPS * STEP)
    weights = (np.sin(np.pi * at / len(at)) ** 2 * np.sinc(at / STEP - TAPS / 2)).astype(np.float32).astype(float)
    rows = np.concatenate([samples, samples[: TAPS * STEP]]).reshape(-1, STEP)
    windowed = [rows[tap : tap + PERIOD // STEP] * weights[tap * STEP : (tap + 1) * STEP] for tap in range(TAPS)]
    voltages = GAIN * np.fft.rfft(np.sum(windowed, axis=0))[:, :C].reshape(-1, SPECTRA, C).swapaxes(1, 2)
    return np.stack([voltages.real, voltages.imag], axis=-1)


def products(voltages: np.ndarray) -> np.ndarray:
    """Sums of products in the order of visibilities: int64 [C, baselines x 4, 2] of int8 [antennas, C, n, 2, 2]."""
    z = voltages[..., 0].astype(float) + 1j * voltages[..., 1]
    pairs = [(j, i, q, p) for j in range(len(z)) for i in range(j + 1) for q in range(2) for p in range(2)]
    sums = np.stack([(z[i, :, :, p] * z[j, :, :, q].conj()).sum(axis=1) for j, i, q, p in pairs], axis=1)
    return np.asarray(np.rint(np.stack([sums.real, sums.imag], axis=-1)), np.int64)


class Compared:
    """How many values were compared, how many are wrong, and what was counted."""

    def __init__(self) -> None:
        self.n, self.wrong, self.n_near, self.lines, self.n_bad = Counter[str](), Counter[str](), 0, list[str](), 0

    def values(self, what: str, off: np.ndarray) -> None:
        self.n[what] += off.size
        self.wrong[what] += int(np.count_nonzero(off))

    def voltages(self, heap: np.ndarray, exact: np.ndarray) -> None:
        off = np.abs(heap - np.clip(np.rint(exact), -127, 127))
        is_near = (off == 1) & (np.abs(np.abs(exact - np.floor(exact)) - 0.5) < NEAR)
        self.n_near += int(np.count_nonzero(is_near))
        self.values("parts of voltages", (off > 0) & ~is_near)

    def counts(self, who: str, counts: Mapping[str, int], heard: Mapping[Heap, int]) -> None:
        """Each heard heap must be in one counter, and no more of them placed than are different."""
        parts, n = {name: counts[name] for name in ("placed", *NOT_PLACED) if counts[name]}, sum(heard.values())
        is_good = sum(parts.values()) == n and counts["placed"] <= len(heard)
        self.line(is_good, f"{who}: {n} heard ({len(heard)} different) = {parts}; missing {counts['missing']}")

    def of_peer(self, who: str, found: Arrays, has: Collection[Heap], heard: Collection[Heap], chunk: int) -> None:
        """What a receiver of the peer has must have been heard; all else in its chunks must be too old to it."""
        told = {name: int(n) for name, n in found.items() if n.ndim == 0 and n}
        chunks = {heap[1] // chunk for heap in has}
        lacks = {heap for heap in heard if heap[1] // chunk in chunks}.difference(has)
        n_old = sum(n for name, n in told.items() if "too_old" in name)
        is_good = set(heard).issuperset(has) and len(lacks) <= n_old and not any("bad" in name for name in told)
        self.line(is_good, f"{who}: it has {len(has)}, and lacks {len(lacks)} that were heard for its chunks; {told}")

    def line(self, is_good: bool, line: str) -> None:
        self.lines.append(line if is_good else f"WRONG: {line}")
        self.n_bad += not is_good

    def __str__(self) -> str:
        values = [f"{n:,} {what}, {self.wrong[what]} wrong" for what, n in self.n.items()]
        return "\n    ".join([*values, f"{self.n_near} rounded otherwise near a half", *self.lines])


# --------------------------------------------------------------------------------------------------------- the runs
def trouble(air: Air, kind: str, name: str, again: Callable[[str], object], heard: Heard) -> None:
    """Makes trouble to a sender, which ``again`` starts under a name."""
    if kind == STOPPED:
        air.started[name].send_signal(signal.SIGSTOP)
        time.sleep(1)
        air.started[name].send_signal(signal.SIGCONT)
    elif kind == KILLED:
        air.started[name].kill()
        air.started[name].wait()
        time.sleep(1)
        again(name)
    elif kind == DOUBLED:
        n = heard.n_more()
        again(f"{name}-again")
        wait_until(lambda: heard.n_more() > n)
        time.sleep(4)
        air.end(f"{name}-again")


def ours(air: Air, antenna: int, groups: Sequence[str]) -> np.ndarray:
    """Starts a digitiser of ours, and returns the packets of its period: uint8 [2, packets, bytes]."""
    from autotune.engines.service.dsim_service import dsim_settings

    kind = f"sync_time_unix = {air.sync}\npacket = {PACKET}\nsample_bits = {BITS}\nperiod = {PERIOD}\n"
    own = f"signals = {json.dumps(OURS[2 * antenna : 2 * antenna + 2])}\n[to]\n{places('endpoints', groups)}"
    air.engine(f"dsim{antenna}", "dsim", kind + own, "--status=5")
    packets, _ = dsim_settings(air.folder / f"dsim{antenna}.toml").packets().read(0, PERIOD)
    return packets.reshape(2, PERIOD // PACKET, -1)


def theirs(air: Air, antenna: int, groups: Sequence[str], again: dict[str, Callable[[str], object]]) -> np.ndarray:
    """Does the same with a digitiser simulator of the peer for each polarisation."""
    packets = []
    for pol in range(2):
        name = f"dsim{antenna}{pol}"
        own: dict[str, Any] = {"signals": THEIRS[2 * antenna + pol], "seed": 2 * antenna + pol}
        air.of_peer(f"of-{name}", "samples_of", **own)
        packets.append(air.result(f"of-{name}")["packets"][0])
        again[name] = partial(air.dsim, pol=pol, group=groups[pol], **own)
    for pol in range(2):
        again[f"dsim{antenna}{pol}"](f"dsim{antenna}{pol}")
    return np.stack(packets)


def run_chain(by_peer: bool, air: Air, kind: str, seconds: float) -> Compared:
    """Digitisers, two F-engines, two X-engines of half a band each, and the peer's receivers of all that they send."""
    samples, (voltages, dumps) = [air.two_groups(), air.two_groups()], (air.two_groups(), air.two_groups())
    air.receiver("samples", "received_samples", groups=samples[0])
    for half in range(2):
        air.receiver(f"voltages{half}", "received_voltages", groups=[voltages[half]], n=2)
    air.receiver("dumps", "received_dumps", groups=dumps, n=2)
    heard = [Heard(groups) for groups in (*samples, voltages, dumps)]
    air.x_engines(2, voltages, dumps)
    again: dict[str, Callable[[str], object]] = {"f1": lambda name: air.f_engine(name, 1, samples[1], voltages)}
    for antenna in range(2):
        air.f_engine(f"f{antenna}", antenna, samples[antenna], voltages)
    make = partial(theirs, again=again) if by_peer else ours
    packets = [make(air, antenna, samples[antenna]) for antenna in range(2)]
    wait_until(lambda: len(heard[3].heaps) > 4)
    time.sleep(seconds)
    troubled = "dsim11" if by_peer else "f1"
    trouble(air, kind, troubled, again[troubled], heard[1 if by_peer else 2])
    time.sleep(seconds)
    air.end(*(name for name in air.started if (name in again and name != "f1") or name in ("dsim0", "dsim1")))
    f, x = air.end("f0", "f1"), air.end("x0", "x1")
    found, known = Compared(), dict[Heap, np.ndarray]()
    compare_samples(air, found, packets[0], heard[0])
    for antenna, pol in np.ndindex(2, 2):
        if by_peer or (antenna, kind) != (1, KILLED):  # or else its first process has told nothing
            counts = f[antenna]["senders"][f"polarisation {pol}"]
            found.counts(f"F-engine m{antenna}, polarisation {pol}", counts, heard[antenna].of(pol))
    exact = [np.stack([spectra(pol) for pol in of_antenna], axis=-2) for of_antenna in packets]
    for half in range(2):
        taken = air.result(f"voltages{half}")
        present, times = taken["present"].reshape(-1, 8, 2), taken["times"]
        of_half = {
            (antenna, int(times[n]) + k * HEAP, half * HALF): taken["data"][n, k, antenna]
            for n, k, antenna in np.argwhere(present).tolist()
        }
        for (antenna, time_, first), heap in of_half.items():
            found.voltages(heap, exact[antenna][time_ % PERIOD // HEAP, first : first + HALF])
        came = {heap for antenna in range(2) for heap in heard[2].of(antenna, half * HALF)}
        found.of_peer(f"xbgpu.recv {half}", taken, of_half, came, 8 * HEAP)
        known |= of_half

    def batch(time_: int) -> np.ndarray | None:
        halves = [[known.get((antenna, time_, first)) for first in (0, HALF)] for antenna in range(2)]
        return None if any(each is None for pair in halves for each in pair) else np.stack(list(map(joined, halves)))

    compare_dumps(air, found, x, heard[2:], 2, batch)
    return found


def joined(halves: Any) -> np.ndarray:
    return np.concatenate(halves)


def run_fsim(air: Air, kind: str, seconds: float) -> Compared:
    """The peer's simulated F-engines, two X-engines of half a band each, and the peer's receiver of dumps."""
    n, voltages, dumps = 4, air.two_groups(), air.two_groups()
    air.of_peer("voltages", "voltages_of", n=n)
    sent, again = air.result("voltages")["heaps"], partial(air.fsim, n=n, group=voltages[0])
    air.receiver("dumps", "received_dumps", groups=dumps, n=n)
    heard = [Heard(voltages), Heard(dumps)]
    air.x_engines(n, voltages, dumps)
    for name in ("fsim", "fsim-again") if kind == DOUBLED else ("fsim",):  # its time begins with 0: both begin together
        again(name)
    wait_until(lambda: len(heard[1].heaps) > 4)
    time.sleep(seconds)
    if kind == DOUBLED:
        air.end("fsim-again")
    else:
        trouble(air, kind, "fsim", again, heard[0])
    time.sleep(seconds)
    air.end("fsim")
    found = Compared()
    compare_dumps(air, found, air.end("x0", "x1"), heard, n, lambda time_: sent[time_ // HEAP % N_FSIM])
    return found


def compare_samples(air: Air, found: Compared, packets: np.ndarray, heard: Heard) -> None:
    taken, has = air.result("samples"), set[Heap]()
    for first, present, data in zip(taken["times"].tolist(), taken["present"].astype(bool), taken["data"], strict=True):
        which = (first // PACKET + np.arange(present.shape[1])) % packets.shape[1]
        rows = data.reshape(2, len(which), -1)
        found.values("bytes of samples", (rows != packets[:, which])[present])
        has.update((pol, first + k * PACKET, 0) for pol, k in np.argwhere(present).tolist())
    found.of_peer("fgpu.recv", taken, has, heard.heaps, 64 * PACKET)


def compare_dumps(
    air: Air, found: Compared, x: Sequence[Any], heard: Sequence[Heard], n: int, batch: Callable[[int], Any]
) -> None:
    """``heard``: the X-engines' heaps, and their dumps. ``batch`` returns all voltages of a time, or None."""
    taken = air.result("dumps")
    for first, data in zip(taken["times"].tolist(), taken["data"], strict=True):
        some = [batch(first + number * HEAP) for number in range(PER_DUMP)]
        if not any(each is None for each in some):
            found.values("parts of visibilities", data != products(np.concatenate(some, axis=2)))
    for half in range(2):
        for antenna in range(n):
            counts = x[half]["senders"][f"m{antenna}"]
            found.counts(f"X-engine {half}, m{antenna}", counts, heard[0].of(antenna, half * HALF))
        due = {each["placed"] + each["missing"] for each in x[half]["senders"].values()}
        if x[half]["received"]["stops"] >= n:  # or else heaps of the last chunk are not due yet
            found.line(len(due) == 1, f"X-engine {half}: {due} heaps due of each antenna")
        made, n_heard = x[half]["made"][0], len(heard[1].of(0, half * HALF))
        n_out, n_empty = made["dumps_out"], made["dumps_empty"]  # both are sent
        found.line(n_out + n_empty == n_heard, f"X-engine {half}: {n_out} dumps out, {n_empty} empty, {n_heard} heard")
    n_whole = len(taken["times"])
    found.line(n_whole > 0, f"qualification/recv.py: {n_whole} whole dumps, and {taken['others']} that lack something")
    for each in heard:
        each.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="of katgpucbf")
    parser.add_argument("--python", type=shlex.split, default=[sys.executable], help="that has katgpucbf")
    parser.add_argument("--seconds", type=float, default=6.0, help="before trouble, and after it")
    parser.add_argument("--only", default="", help="runs whose names have this in them")
    args = parser.parse_args()
    runs: list[tuple[str, str, Callable[[Air, str, float], Compared]]] = [
        *(("its dsim", kind, partial(run_chain, True)) for kind in (NONE, STOPPED, KILLED, DOUBLED)),
        *(("our dsim", kind, partial(run_chain, False)) for kind in (NONE, STOPPED, KILLED, DOUBLED)),
        *(("its fsim", kind, run_fsim) for kind in (NONE, STOPPED, DOUBLED)),
    ]
    n_wrong = 0
    for number, (name, kind, run) in enumerate(runs):
        if args.only not in f"{name}, {kind}":
            continue
        with tempfile.TemporaryDirectory() as folder:
            air = Air(args, Path(folder), number)
            try:
                found = run(air, kind, args.seconds)
            finally:
                air.kill()
        print(f"{name}, {kind}:\n    {found}", flush=True)
        n_wrong += sum(found.wrong.values()) + found.n_bad
    raise SystemExit("something is WRONG" if n_wrong else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as"]:
        run_in_peer(sys.argv[2], json.loads(sys.argv[3]))
    else:
        main()
