"""Measures engines on a GPU, from pinned memory to pinned memory: rates, what the CPU does, latency, a timeline.

    python benchmarks/engines.py f --channels 4096 --seconds 120 --timeline f.json
    python benchmarks/engines.py x --antennas 256 --channels 128 --seconds 20
    python benchmarks/engines.py fx --antennas 16 --seconds 20

Sources write their buffers once, and say afterwards that they are filled again: what is measured is an engine, not a
disk. ``f`` compares its rate with that of the same copies alone, 2.5 bytes in and 2 bytes out at once for each sample
of 10 bits and its voltage. ``check`` compares checksums of all heaps, and of all dumps, of several cuts of a stream.
"""

import argparse
import json
import threading
import time
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.engine import FEngine
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import AUTO, FILTER_BANKS, Kernels
from autotune.engines.machine.activity import Span
from autotune.engines.machine.gpu_backend import GpuBackend
from autotune.engines.streams.samples import SampleInfo, Samples
from autotune.engines.streams.voltages import Batches, VoltageInfo
from autotune.engines.x.engine import XEngine

BITS, PACKET, HEAP, TAPS, RATE_HZ = 10, 4096, 256, 16, 1712e6
N_KEPT_SPANS = 400


class Repeats:
    """Samples whose packets repeat after ``period``: each buffer is written when it is seen first.

    Args:
        pace: samples a second at which they come, as live ones do; None: at once.
    """

    def __init__(self, n_packets: int, seed: int = 0, period: int = 1024, pace: float | None = None) -> None:
        self.info = SampleInfo(BITS, 2, RATE_HZ, PACKET, n_packets * PACKET, antenna=f"m{seed:03}")
        self.is_live = pace is not None
        self._rows = np.random.default_rng(seed).integers(0, 256, (2, period * PACKET * BITS // 8), np.uint8)
        self._period, self._left, self._at, self._pace = period, n_packets, 0, pace
        self._filled: set[tuple[int, int]] = set()
        self._began = 0.0

    def read(self, out: np.ndarray) -> Samples | None:
        n = min(out.shape[1] * 8 // BITS // PACKET, self._left)
        if n == 0:
            return None
        first, width = self._at % self._period, PACKET * BITS // 8
        if (out.ctypes.data, first) not in self._filled:
            for i in range(0, n, self._period):  # n is at most the period, or a multiple of it
                some = self._rows[:, first * width : (first + n - i) * width]
                out[:, i * width : i * width + some.shape[1]] = some
            self._filled = {(out.ctypes.data, first)} | {f for f in self._filled if f[0] != out.ctypes.data}
            self._began = 0.0
        if self._pace is not None:
            self._began = self._began or time.monotonic() - self._at * PACKET / self._pace
            time.sleep(max(0.0, self._began + (self._at + n) * PACKET / self._pace - time.monotonic()))
        self._at, self._left = self._at + n, self._left - n
        return Samples((self._at - n) * PACKET, np.ones((2, n), bool))

    def close(self) -> None:
        return


class RepeatedBatches:
    """Voltages that are the same in each batch."""

    is_live = False

    def __init__(self, n_antennas: int, n_channels: int, n_batches: int) -> None:
        info = VoltageInfo(n_channels, 2, 8, HEAP, 2 * n_channels, SampleInfo(BITS, 2, RATE_HZ, PACKET))
        self.antennas, self._left, self._at = (info,) * n_antennas, n_batches, 0
        shape = n_antennas, *info.heap_shape
        self._batch = np.random.default_rng(1).integers(-127, 128, shape, np.int8)
        self._filled: set[int] = set()

    def read(self, out: np.ndarray) -> Batches | None:
        n = min(len(out), self._left)
        if n == 0:
            return None
        if out.ctypes.data not in self._filled:
            self._filled.add(out.ctypes.data)
            out[...] = self._batch
        self._at, self._left = self._at + n, self._left - n
        return Batches((self._at - n) * self.antennas[0].heap_samples, np.ones((n, len(self.antennas)), bool))

    def close(self) -> None:
        return


@dataclass
class Sums:
    """Checksums of what was written, by time; only of the first so many, where ``most`` says so."""

    most: int = 0
    by_time: dict[int, int] = field(default_factory=dict)

    def write(self, times: Any, data: np.ndarray, *others: Any) -> None:
        if len(self.by_time) < self.most:
            for t, part in zip(np.atleast_1d(times).tolist(), data if np.ndim(times) else [data], strict=True):
                self.by_time[t] = zlib.crc32(np.ascontiguousarray(part).data)

    def close(self) -> None:
        return


class Allocations(cupy.cuda.MemoryHook):  # type: ignore[misc]
    """Counts allocations of device memory."""

    name = "counts"
    n = 0

    def malloc_preprocess(self, **kwargs: Any) -> None:
        self.n += 1


def settings_of(channels: int, chunk: int) -> BandSettings:
    length = 2 * channels
    weights = np.sinc(np.arange(TAPS * length) / length - TAPS / 2) * np.hanning(TAPS * length)
    heaps = max(1, chunk // (length * HEAP))
    return BandSettings(channels, weights.reshape(TAPS, length).astype(np.float32), 8, HEAP, heaps)


def delays() -> list[DelayModel]:
    return [
        DelayModel(Piece(0, 100.25, 2e-8, 0.1, 1e-9), Piece(1 << 30, 500.0, -1e-8)),
        DelayModel(Piece(0, 90.75, -2e-8, 0.3, -1e-9)),
    ]


def output(settings: BandSettings, sink: Sums | None) -> Output:
    return Output(settings, sink, delays(), Gains(settings.n_channels, 2, 1e-3))


def copies_alone(chunk: int, n: int = 200) -> float:
    """Returns the samples a second of copies of 2.5 bytes in and 2 bytes out for each sample time, at once."""
    backend = GpuBackend()
    n_in, n_out = chunk * 2 * BITS // 8, chunk * 2
    pinned_in, pinned_out = backend.pinned((n_in,), np.uint8), backend.pinned((n_out,), np.uint8)
    device_in, device_out = backend.empty((n_in,), np.uint8), backend.empty((n_out,), np.uint8)
    streams = backend.stream(), backend.stream()
    for repeats in (10, n):
        backend.finish()
        began = time.perf_counter()
        for _ in range(repeats):
            streams[0].copy_in(device_in, pinned_in)
            streams[1].copy_out(pinned_out, device_out)
        backend.finish()
    return n * chunk / (time.perf_counter() - began)


def copy_in_alone(n_bytes: int, n: int = 100) -> float:
    """Returns bytes a second."""
    backend = GpuBackend()
    pinned, device, stream = backend.pinned((n_bytes,), np.uint8), backend.empty((n_bytes,), np.uint8), backend.stream()
    stream.copy_in(device, pinned)
    backend.finish()
    began = time.perf_counter()
    for _ in range(n):
        stream.copy_in(device, pinned)
    backend.finish()
    return n * n_bytes / (time.perf_counter() - began)


@contextmanager
def observed(figures: dict[str, Any]) -> Any:
    """Notes what a run costs: wall time, the main thread's part of a core, allocations, compilations."""
    with Allocations() as allocations:
        compiled: list[str] = []
        from autotune.runtime import gpu

        before = gpu.cubin_of

        def counted(*given: Any) -> Any:
            compiled.append(given[1])
            return before(*given)

        gpu.cubin_of = counted  # type: ignore[assignment]
        wall, cpu, whole = time.perf_counter(), time.thread_time(), time.process_time()
        yield
        seconds = time.perf_counter() - wall
        figures["seconds"] = seconds
        figures["main thread"] = (time.thread_time() - cpu) / seconds
        figures["all threads"] = (time.process_time() - whole) / seconds
        figures["allocations"], figures["compilations"] = allocations.n, len(compiled)
        gpu.cubin_of = before


def run_f(a: argparse.Namespace) -> dict[str, Any]:
    chunk = 1 << a.log_chunk
    figures: dict[str, Any] = {"copies": copies_alone(chunk)}
    rate = a.pace * 1e9 if a.pace else figures["copies"]
    n_packets = int(a.seconds * rate) // chunk * chunk // PACKET
    sink, spans = Sums(), Spans()
    source = Repeats(n_packets, pace=rate if a.pace else None)
    backend = GpuBackend()
    kernels = Kernels(backend, print, results=a.results, filter_bank=a.filter_bank)
    outputs = [output(settings_of(a.channels, chunk), sink)]
    engine = FEngine(backend, source, outputs, chunk // PACKET, kernels, report=a.say, trace=spans)

    def forget() -> None:
        engine.counters[0].latency_s, engine.counters[0].chunks_dropped = 0.0, 0

    threading.Timer(a.seconds / 4, forget).start()  # buffers are being filled before
    with observed(figures), profiled(a.profile):
        (counters,) = engine.run()
    figures["rate"] = counters.samples_in / figures["seconds"]
    figures["of copies"] = figures["rate"] / figures["copies"]
    figures["dropped"] = counters.chunks_dropped
    figures["idle"] = engine.progress.idle_share()
    figures["latency, chunks"] = counters.latency_s * (rate if a.pace else figures["rate"]) / chunk
    figures["heaps"] = counters.heaps_out
    spans.write(a.timeline)
    return figures


def run_x(a: argparse.Namespace) -> dict[str, Any]:
    batch_bytes = a.antennas * a.channels * HEAP * 4
    per_chunk = max(1, (1 << a.log_chunk) * 4 // batch_bytes)
    figures: dict[str, Any] = {"copies": copy_in_alone(per_chunk * batch_bytes)}
    n_batches = max(1024, int(a.seconds * figures["copies"] / batch_bytes)) // 512 * 512
    source, spans, backend = RepeatedBatches(a.antennas, a.channels, n_batches), Spans(), GpuBackend()
    engine = XEngine(
        backend,
        source,
        Sums(),
        Kernels(backend, print),
        accumulate=512,
        batches_per_chunk=per_chunk,
        report=a.say,
        trace=spans,
    )
    with observed(figures), profiled(a.profile):
        counters = engine.run()
    figures["rate"] = counters.batches_in * batch_bytes / figures["seconds"]
    figures["of copies"] = figures["rate"] / figures["copies"]
    figures["dumps"], figures["idle"] = counters.dumps_out, engine.progress.idle_share()
    spans.write(a.timeline)
    return figures


def run_fx(a: argparse.Namespace) -> dict[str, Any]:
    chunk = 1 << a.log_chunk
    figures: dict[str, Any] = {"copies": copy_in_alone(chunk * 2 * BITS // 8) / (2 * BITS / 8)}
    n_packets = int(a.seconds * figures["copies"] / a.antennas) // chunk * chunk // PACKET
    settings, spans, backend = settings_of(a.channels, chunk), Spans(), GpuBackend()
    engine = FXEngine(
        backend,
        [Repeats(n_packets, seed) for seed in range(a.antennas)],
        [output(settings, None) for _ in range(a.antennas)],
        Sums(),
        Kernels(backend, print if a.antennas == 1 else lambda line: None, filter_bank=a.filter_bank),
        accumulate=512,
        chunk_samples=chunk,
        report=a.say,
        trace=spans,
    )
    with observed(figures), profiled(a.profile):
        f, x = engine.run()
    figures["rate"] = sum(counters.samples_in for counters in f) / figures["seconds"]
    figures["of copies"] = figures["rate"] / figures["copies"]
    figures["dumps"], figures["idle"] = x.dumps_out, engine.progress.idle_share()
    spans.write(a.timeline)
    return figures


def run_check(a: argparse.Namespace) -> dict[str, Any]:
    """Compares checksums of a stream that is cut in several ways, the first of which is one big call."""
    log_all = a.log_chunk
    found = []
    for log_chunk in (log_all, log_all - 2, log_all - 4):
        sink, backend, chunk = Sums(1 << 30), GpuBackend(), 1 << log_chunk
        settings = settings_of(a.channels, 1 << (log_all - 3))
        source = Repeats((1 << log_all) // PACKET)
        kernels = Kernels(backend, lambda line: None, filter_bank=a.filter_bank)
        FEngine(backend, source, [output(settings, sink)], chunk // PACKET, kernels).run()
        found.append(sink.by_time)
    same = all(other == found[0] for other in found[1:])
    dumps = []
    for per_chunk in (64, 16, 3):
        sums, backend = Sums(1 << 30), GpuBackend()
        source_x = RepeatedBatches(a.antennas, 64, 200)
        kernels = Kernels(backend, lambda line: None)
        XEngine(backend, source_x, sums, kernels, accumulate=48, batches_per_chunk=per_chunk).run()
        dumps.append(sums.by_time)
    fx = []
    for log_chunk in (log_all - 2, log_all - 4):
        sums, backend, settings = Sums(1 << 30), GpuBackend(), settings_of(a.channels, 1 << (log_all - 4))
        sources = [Repeats((1 << (log_all - 2)) // PACKET, seed) for seed in range(3)]
        outputs = [output(settings, None) for _ in sources]
        kernels = Kernels(backend, lambda line: None, filter_bank=a.filter_bank)
        FXEngine(backend, sources, outputs, sums, kernels, accumulate=2, chunk_samples=1 << log_chunk).run()
        fx.append(sums.by_time)
    return {
        "heaps": len(found[0]),
        "heaps are the same": same,
        "dumps": len(dumps[0]),
        "dumps are the same": all(other == dumps[0] for other in dumps[1:]),
        "F and X, dumps": len(fx[0]),
        "F and X, dumps are the same": fx[0] == fx[1],
    }


class Spans:
    """Keeps the last spans of the device's work."""

    def __init__(self) -> None:
        self._kept: list[Span] = []

    def __call__(self, spans: list[Span]) -> None:
        self._kept = (self._kept + spans)[-N_KEPT_SPANS:]

    def write(self, path: str | None) -> None:
        if path and self._kept:
            begin = min(span.begin for span in self._kept)
            rows = [
                [span.kind, round((span.begin - begin) * 1e6), round((span.end - begin) * 1e6)] for span in self._kept
            ]
            Path(path).write_text(json.dumps(rows))


@contextmanager
def profiled(path: str | None) -> Any:
    if path is None:
        yield
        return
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    yield
    profile.disable()
    with open(path, "w") as file:
        pstats.Stats(profile, stream=file).sort_stats("tottime").print_stats(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["f", "x", "fx", "check"])
    parser.add_argument("--channels", type=int, default=4096)
    parser.add_argument("--antennas", type=int, default=16)
    parser.add_argument("--log-chunk", type=int, default=25, help="samples of a chunk, as a power of two")
    parser.add_argument("--seconds", type=float, default=10, help="how long an engine runs")
    parser.add_argument("--pace", type=float, help="f: GS/s of a live source, for the latency")
    parser.add_argument("--filter-bank", choices=FILTER_BANKS, default=AUTO, help="f, fx, check: what makes voltages")
    parser.add_argument("--results", help="f: recorded sweeps, of which the best configs are taken")
    parser.add_argument("--timeline", help="where the last spans go, as JSON: kind, begin, end in us")
    parser.add_argument("--profile", help="where a profile of the main thread goes")
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    a.say = print if a.verbose else lambda line: None
    figures = {"f": run_f, "x": run_x, "fx": run_fx, "check": run_check}[a.what](a)
    told = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in figures.items()
    )
    print(f"{a.what} channels={a.channels} antennas={a.antennas} chunk=2^{a.log_chunk}: {told}", flush=True)


if __name__ == "__main__":
    main()
