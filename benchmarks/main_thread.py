"""Measures what an F-engine costs its main thread, which plans, prepares and gives all work to the device.

    python benchmarks/main_thread.py                        every bank of wide channels, and a narrow band; no device
    python benchmarks/main_thread.py --profile              and the functions that take longest
    python benchmarks/main_thread.py --device cuda          on a GPU, from pinned memory to pinned memory

Without a GPU the device does nothing: copies, events and launches return at once, and are counted. What comes before
them is done as for a GPU: kernels are chosen and rendered, and a launch is prepared up to the call of CUDA. Samples
come at once; nobody writes voltages. A share is the CPU time that the main thread needs for a second of samples that
come at 20 GS/s; beyond 1 it bounds the rate. It counts sample times, whatever the number of polarisations.
"""

import argparse
import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from autotune.core.definition import Device
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filters import low_pass, prototype
from autotune.engines.f.narrow_band import NarrowSettings
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.kernels.choice import CHAIN, CHANNELISE, Kernels
from autotune.engines.machine.gpu_backend import GpuBackend
from autotune.engines.machine.host_backend import HostEvent
from autotune.engines.streams.samples import SampleInfo, Samples
from autotune.runtime import arrays, gpu, prepared

BITS, PACKET, HEAP, TAPS, RATE_HZ, LINE_HZ = 10, 4096, 256, 16, 1712e6, 20e9
WIDE, NARROW = "4096 channels", "narrow, 1024 channels of a 8th of the band"
MOST_LINES = 12  # of a profile
LABELS = {"record": "events", "after": "waits", "send": "sends"}


class NullStream:
    """Does nothing, and counts what it is asked for."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts, self._event = counts, HostEvent()  # has happened

    def __getattr__(self, name: str) -> Callable[..., HostEvent]:
        label, counts, event = LABELS.get(name, name), self._counts, self._event

        def counted(*given: object, **named: object) -> HostEvent:
            counts[label] += 1
            return event

        setattr(self, name, counted)  # the next time it is found at once
        return counted


class OnGpu(np.ndarray):
    """Memory that says to be on GPU 0, as an array of CuPy does."""

    data = SimpleNamespace(device_id=0, ptr=0)  # type: ignore[assignment]


class NullBackend:
    """Implements ``Backend``: an H200 whose kernels do nothing, with memory that nobody touches."""

    device, identifier = Device("NVIDIA H200", "cuda", "sm_90", n_multiprocessors=132), "null"

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def pinned(self, shape: Any, dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype).view(OnGpu)

    def stream(self) -> NullStream:
        return NullStream(self.counts)

    def launcher(self, kernel: Any, problem: Any, config: Any, source: str) -> Callable[..., None]:
        def enqueue(arguments: object, stream: object) -> None:
            self.counts["launches"] += 1

        def loaded(*given: object) -> SimpleNamespace:
            return SimpleNamespace(cubin=SimpleNamespace(data=b""), own=None, bound=lambda launch: enqueue)

        with patch.object(prepared, "LoadedKernel", loaded):
            return prepared.PreparedKernel(kernel, problem, config, source, self.device, 0).launch

    def fourier(self, length: int, n: int, is_complex: bool) -> Callable[..., None]:
        def transform(*given: object) -> None:
            self.counts["launches"] += 1

        return transform

    def finish(self) -> None:
        return


class AtOnce:
    """Samples that are there at once: what memory holds. Every chunk has flags of its own."""

    is_live = False

    def __init__(self, n_chunks: int, chunk: int) -> None:
        self.info = SampleInfo(BITS, 2, RATE_HZ, PACKET, n_chunks * chunk)
        self._n_left, self._n_packets, self._at = n_chunks, chunk // PACKET, 0

    def read(self, out: np.ndarray) -> Samples | None:
        if self._n_left == 0:
            return None
        self._n_left -= 1
        self._at += self._n_packets
        return Samples((self._at - self._n_packets) * PACKET, np.ones((2, self._n_packets), bool))

    def close(self) -> None:
        return


class Nobody:
    """A sink that looks at nothing."""

    def write(self, times: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        return

    def close(self) -> None:
        return


def output(band: str, chunk: int, rate: float) -> Output:
    """Returns a band whose delays change by ``rate`` and its negative, with pieces as they come from live updates."""
    n_channels, decimation = (4096, 1) if band == WIDE else (1024, 8)
    step = 2 * n_channels if band == WIDE else n_channels
    heaps = max(1, chunk // decimation // (step * HEAP))
    settings: Any = BandSettings(n_channels, prototype(n_channels, TAPS, is_complex=band != WIDE), 8, HEAP, heaps)
    if band == NARROW:
        settings = NarrowSettings(settings, low_pass(16 * decimation, decimation), 0.2, decimation)
    every = 8 * chunk
    signs = (rate, 100.25), (-rate, 90.75)
    delays = [
        DelayModel(*(Piece(n * every, delay + turn * n * every, turn, 0.1, turn / 20) for n in range(64)))
        for turn, delay in signs
    ]
    return Output(settings, Nobody(), delays, Gains(n_channels, 2, 1e-3))


@contextmanager
def without_gpu() -> Iterator[None]:
    """Lets kernels be prepared where there is no GPU."""
    with (
        patch.object(gpu, "made_current", lambda index: nullcontext()),
        patch.object(prepared, "memory_for", lambda *given: None),
        patch.dict(arrays.readers, {OnGpu: arrays.read_cupy}),
    ):
        yield


def run(band: str, bank: str, n_chunks: int, given: argparse.Namespace) -> tuple[float, float, Counter[str]]:
    """Returns CPU seconds of the main thread, seconds, and what was counted, each of a chunk."""
    chunk = 1 << given.log_chunk
    backend: Any = GpuBackend() if given.device == "cuda" else NullBackend()
    kernels = Kernels(backend, lambda line: None, filter_bank=bank)
    engine = FEngine(backend, AtOnce(n_chunks, chunk), [output(band, chunk, given.rate)], chunk // PACKET, kernels)
    counts = backend.counts if given.device == "null" else Counter[str]()
    counts.clear()
    profile = cProfile.Profile(time.thread_time)
    began, cpu = time.perf_counter(), time.thread_time()
    with profile if given.profile else nullcontext():
        engine.run()
    cpu, seconds = time.thread_time() - cpu, time.perf_counter() - began
    if given.profile:
        pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(MOST_LINES)
    return cpu / n_chunks, seconds / n_chunks, counts


def line_of(band: str, bank: str, given: argparse.Namespace) -> str:
    """Returns a line of what one band costs, in the cheapest of some runs."""
    n_chunks, chunk = given.chunks // (1 if band == WIDE else 8), 1 << given.log_chunk
    cpu, seconds, counts = min((run(band, bank, n_chunks, given) for _ in range(given.runs)), key=lambda one: one[0])
    line = f"{bank}, {band}: {cpu * 1e6:.0f} us a chunk, {cpu * LINE_HZ / chunk:.2f} of a core at 20 GS/s"
    if given.device == "cuda":
        return f"{line}; {chunk / seconds / 1e9:.2f} GS/s with {cpu / seconds:.2f} of a core"
    return f"{line}; a chunk has {', '.join(f'{n / n_chunks:.2f} {what}' for what, n in sorted(counts.items()))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["null", "cuda"], default="null")
    parser.add_argument("--log-chunk", type=int, default=25, help="samples of a chunk, as a power of two")
    parser.add_argument("--chunks", type=int, default=400, help="of a run of wide channels; on a GPU take thousands")
    parser.add_argument("--runs", type=int, default=5, help="the cheapest of so many is told")
    parser.add_argument("--rate", type=float, default=2e-8, help="samples by which a delay grows in a sample")
    parser.add_argument("--profile", action="store_true", help="tell the functions of the main thread; it is slower")
    given = parser.parse_args()
    with without_gpu() if given.device == "null" else nullcontext():
        for band, bank in ((WIDE, CHAIN), (WIDE, CHANNELISE), (NARROW, CHAIN), (NARROW, CHANNELISE)):
            print(line_of(band, bank, given), flush=True)


if __name__ == "__main__":
    main()
