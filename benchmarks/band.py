"""Measures an F-engine's filter bank on a GPU: samples come from device memory, and voltages stay there.

    python benchmarks/band.py --channels 1024 --filter-bank channelise --log-chunk 26

It tells the bytes that the filter bank needs besides both, and its rate, in sample times a second, whatever the number
of polarisations, in two ways:

- with planning: the CPU plans each chunk and prepares its arguments while the GPU works, as in an engine;
- of the GPU alone: what was given to the GPU for the next 24 chunks is recorded (``replay.py``), and given again many
  times without planning, with the GPU's events around it. It is all that a chunk needs: each launch of the filter bank,
  offsets, delays and phases sent to the device, the clearing of counts, events. Each repetition is 240 chunks without
  a pause; the median of all is told, and the quartiles. A chunk is late if the GPU had done the one before when the CPU
  had given all of its work: where some are, the GPU may have waited, and could be faster than the figure says.
"""

import argparse
import time
from typing import Any

import cupy
import numpy as np
from engines import BITS, PACKET, RATE_HZ, delays, settings_of
from replay import Recorder, Work, content, timed

from autotune.engines.corrections.gains import Gains
from autotune.engines.f.band import Band
from autotune.engines.f.sample_buffers import LoadedChunk
from autotune.engines.kernels.choice import AUTO, FILTER_BANKS, Kernels
from autotune.engines.machine.gpu_backend import GpuBackend
from autotune.engines.run.bay import Bay
from autotune.engines.streams.samples import SampleInfo, Samples

N_RECORDED = 24  # chunks: each buffer of voltages has its turn equally often
N_ROUNDS = 10  # times that they are given in a repetition


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, default=4096)
    parser.add_argument("--log-chunk", type=int, default=25, help="samples of a chunk, as a power of two")
    parser.add_argument("--seconds", type=float, default=10, help="how long it runs with planning")
    parser.add_argument("--repetitions", type=int, default=20, help="measurements of the GPU alone")
    parser.add_argument("--filter-bank", choices=FILTER_BANKS, default=AUTO, help="what makes voltages")
    parser.add_argument("--results", help="recorded sweeps, of which the best configs are taken")
    given = parser.parse_args()
    told = ", ".join(f"{name} {value}" for name, value in measured(given).items())
    print(f"channels {given.channels}, chunk 2^{given.log_chunk}, {told}", flush=True)


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """Returns the figures by name."""
    backend, info, chunk = Recorder(GpuBackend()), SampleInfo(BITS, 2, RATE_HZ, PACKET), 1 << given.log_chunk
    bay = Bay(backend, Kernels(backend, print, results=given.results, filter_bank=given.filter_bank))
    settings, gains = settings_of(given.channels, chunk), Gains(given.channels, 2, 1e-3)
    pool = cupy.get_default_memory_pool()
    before = pool.used_bytes()
    band = Band(bay, info, settings, delays=delays(), gains=gains, deliver=lambda buffer: ())
    buffers = settings.n_buffers * sum(
        int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in settings.parts(info.n_pols).values()
    )
    rows = cupy.random.default_rng(2).integers(0, 256, (2, (band.head + chunk) * BITS // 8), np.uint8)
    received = np.ones((2, chunk // PACKET), bool)

    def take(number: int) -> None:
        band.take(LoadedChunk(rows, BITS, 0, number * chunk - band.head, Samples(number * chunk, received), ()))

    take(0)
    take(1)
    cupy.cuda.Device().synchronize()
    besides = pool.used_bytes() - before - buffers - rows.nbytes
    began, number = time.perf_counter(), 2
    while time.perf_counter() - began < given.seconds or number < 10:
        take(number)
        number += 1
        if number % 8 == 0:
            cupy.cuda.Device().synchronize()
    cupy.cuda.Device().synchronize()
    rate = (number - 2) * chunk / (time.perf_counter() - began)
    chunks: list[Work] = []
    for later in range(number, number + N_RECORDED):
        with backend.recording() as work:
            take(later)
        chunks.append(work)
    figures = {"bytes besides": besides, "GS/s with planning": f"{rate / 1e9:.4g}"}
    return figures | gpu_alone(backend, chunks, chunk, given.repetitions)


def gpu_alone(backend: Recorder, chunks: list[Work], chunk: int, repetitions: int) -> dict[str, Any]:
    """Returns the rate at which the GPU does recorded work of chunks of so many samples."""
    clock = backend.stream()
    times = [timed(chunks, N_ROUNDS, clock) for _ in range(repetitions)]
    low, median, high = np.percentile([chunk / seconds / 1e9 for seconds, _ in times], [25, 50, 75]).tolist()
    late, n = sum(n_late for _, n_late in times), repetitions * N_ROUNDS * len(chunks)
    return {
        "GS/s of the GPU alone": f"{median:.4g}",
        "quartiles": f"{low:.4g} to {high:.4g}",
        "repetitions": repetitions,
        "late chunks": f"{late} of {n}",
        "work of a chunk": " + ".join(f"{number:.3g} {what}" for what, number in content(chunks).items()),
    }


if __name__ == "__main__":
    main()
